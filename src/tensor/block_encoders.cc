// Compiled once for every instruction set: TRTMC_ISA is its namespace, TRTMC_LANES the floats of a
// register. Includes nothing whose functions another file could take for its own.
#include "tensor/block_encoders.h"

#include <utility>

#define TRTMC_STRING_OF(x) #x
#define TRTMC_STRING(x) TRTMC_STRING_OF(x)

namespace trtmc::TRTMC_ISA {
namespace {

constexpr int kLanes = TRTMC_LANES;
using Vec = float __attribute__((vector_size(4 * kLanes)));
using IntVec = int32_t __attribute__((vector_size(4 * kLanes)));

constexpr float kLowestShift = -(1 << (kShiftBits - 1)) * kShiftStep;
constexpr float kHighestShift = ((1 << (kShiftBits - 1)) - 1) * kShiftStep;

static inline Vec set1(float x) { return Vec{} + x; }
static inline Vec select(IntVec mask, Vec yes, Vec no) { return mask ? yes : no; }
static inline IntVec bits_of(Vec v) { return reinterpret_cast<IntVec>(v); }
static inline Vec float_of(IntVec v) { return reinterpret_cast<Vec>(v); }
static inline Vec magnitude(Vec v) { return float_of(bits_of(v) & 0x7fffffff); }

// Some rows of a block with what they weigh, side by side.
struct Rows {
  Vec values[kBlockColumns];
  Vec weights[kBlockColumns];
  Vec sum_weights, sum_values;  // Weighted.
  Vec largest;                  // The value of the largest magnitude.
  Vec low, high;                // The least value and the greatest, or zero.
};

// A choice of scale and shift for each row.
struct Choice {
  Vec scale, shift;
};

// The nearest whole multiple of a power of two, ties to even, for |v| < 2^22 of it.
static inline Vec to_whole(Vec v, float power) {
  const float whole = 0x1.8p23F * power;
  return (v + whole) - whole;
}

static inline Vec clamped(Vec shift) {
  shift = select(shift > kLowestShift, shift, set1(kLowestShift));
  return select(shift < kHighestShift, shift, set1(kHighestShift));
}
static inline Vec nearest_shift(Vec shift) { return to_whole(clamped(shift), kShiftStep); }

// The nearest that the format holds, ties to even: 10 - kShiftBits bits behind the leading one,
// whole multiples of the least one below f16's normal numbers, never infinite.
static inline Vec storable(Vec scale) {
  constexpr int kDropped = 13 + kShiftBits;
  constexpr int32_t kHalf = (1 << (kDropped - 1)) - 1;
  const IntVec bits = bits_of(scale);
  const Vec normal = float_of((bits + kHalf + (bits >> kDropped & 1)) & -(1 << kDropped));
  constexpr float kLeast = (1 << kShiftBits) * 0x1p-24F;
  const Vec subnormal = to_whole(scale, kLeast);
  const Vec rounded = select(magnitude(scale) < 0x1p-14F, subnormal, normal);
  constexpr float kMost = 65536 - 65536 * 0x1p-11F * (1 << kShiftBits);
  return select(magnitude(rounded) <= kMost, rounded, select(scale < 0, set1(-kMost), set1(kMost)));
}

// From a choice, one with its scale times `scale` and `shift` steps more.
struct Move {
  float scale, shift;
};

// What the codes of a format stand for, where its search starts, and where it goes on from the best
// choice so far: least squares stay where no code changes, and moves get away from there.
struct Q4Points {
  static constexpr int kNoCode = kQ4NoCode;
  // Where the largest weight of a block lies on the grid, at each start.
  static constexpr float kStarts[] = {-134, -118, 105, 119};
  static constexpr Move kMoves[] = {{0.98F, 1}, {1.02F, -1}, {0.98F, -1}, {1.02F, 1},
                                    {0.95F, 0}, {1.05F, 0},  {1, 2},      {1, -2}};

  static Choice start(const Rows& rows, float at) { return {storable(rows.largest / at), Vec{}}; }

  // The point of the grid nearest to v; of two as near the lower.
  static Vec nearest(Vec v) {
    Vec point = set1(kQ4Grid[0]);
    for (int k = 1; k < 16; ++k) {
      const Vec step = set1(static_cast<float>(kQ4Grid[k] - kQ4Grid[k - 1]));
      const IntVec above = v > static_cast<float>(kQ4Grid[k] + kQ4Grid[k - 1]) / 2;
      point += float_of(bits_of(step) & above);
    }
    return point;
  }
  // Its code.
  static IntVec nearest_code(Vec v) {
    IntVec code{};
    for (int k = 1; k < 16; ++k) code -= v > static_cast<float>(kQ4Grid[k] + kQ4Grid[k - 1]) / 2;
    return code;
  }
};

struct Q6Points {
  static constexpr int kNoCode = kQ6Zero;
  static constexpr float kLowest = -kQ6Zero;
  static constexpr float kHighest = kQ6MostCode - kQ6Zero;
  // From what spreads the codes over all of the weights, as far as shifts allow.
  static constexpr Move kStarts[] = {{1, 0},     {1, 1},     {1, -1},     {1, 2},     {1, -2},
                                     {0.97F, 0}, {0.97F, 1}, {0.97F, -1}, {0.97F, 2}, {0.97F, -2}};
  static constexpr Move kMoves[] = {{1.01F, 0}, {0.99F, 0},  {1, 1},     {1, -1},
                                    {0.98F, 1}, {0.98F, -1}, {1.02F, 1}, {1.02F, -1}};

  // The middle of the codes lies as near as shifts can to the middle of the weights, or some steps
  // off; the scale is what both ends need then, or a little less.
  static Choice start(const Rows& rows, const Move& at) {
    const Vec step = (rows.high - rows.low) / kQ6MostCode;
    const Vec middle = (rows.high + rows.low) / (2 * step) - (kHighest + kLowest) / 2;
    const Vec shift = nearest_shift(middle + at.shift * kShiftStep);
    const Vec up = rows.high / (kHighest + shift), down = rows.low / (kLowest + shift);
    return {storable(select(up > down, up, down) * at.scale), shift};
  }

  // To nearest, ties to even.
  static Vec nearest(Vec v) {
    const Vec from_below = select(v > kLowest, v, set1(kLowest));
    return to_whole(select(from_below < kHighest, from_below, set1(kHighest)), 1);
  }
  static IntVec nearest_code(Vec v) {
    return __builtin_convertvector(nearest(v), IntVec) + kQ6Zero;
  }
};

// What the nearest codes to a choice give: the weighted sums of squared errors, of points g of the
// grid, of g^2 and of g times value.
struct Fit {
  Vec error, g, gg, gx;
};

static inline void load_rows(const WeightBlock& block, int first, Rows& rows) {
  Vec square{};
  rows.largest = rows.low = rows.high = Vec{};
  for (int i = 0; i < kBlockColumns; ++i) {
    __builtin_memcpy(&rows.values[i], &block.values[i][first], sizeof(Vec));
    const Vec x = rows.values[i];
    square += x * x;
    rows.largest = select(magnitude(x) > magnitude(rows.largest), x, rows.largest);
    rows.low = select(x < rows.low, x, rows.low);
    rows.high = select(x > rows.high, x, rows.high);
  }
  const Vec floor = 4 * square / static_cast<float>(block.columns);
  rows.sum_weights = rows.sum_values = Vec{};
  for (int i = 0; i < kBlockColumns; ++i) {
    const Vec x = rows.values[i];
    rows.weights[i] = i < block.columns ? x * x + floor : Vec{};
    rows.sum_weights += rows.weights[i];
    rows.sum_values += rows.weights[i] * x;
  }
}

template <typename Points>
static inline Fit fit(const Rows& rows, const Choice& choice) {
  const Vec inverse = 1 / choice.scale;
  Fit fit{};
  for (int i = 0; i < kBlockColumns; ++i) {
    const Vec x = rows.values[i], w = rows.weights[i];
    const Vec g = Points::nearest(x * inverse - choice.shift);
    const Vec off = choice.scale * (g + choice.shift) - x;
    const Vec wg = w * g;
    fit.error += w * off * off;
    fit.g += wg;
    fit.gg += wg * g;
    fit.gx += wg * x;
  }
  return fit;
}

// The scale and shift of least error for the codes of `fit`, first both as real numbers, then the
// scale for the shift that it is rounded to.
static inline Choice refine(const Rows& rows, const Fit& fit, const Choice& choice) {
  const Vec determinant = rows.sum_weights * fit.gg - fit.g * fit.g;
  const Vec slope = (rows.sum_weights * fit.gx - fit.g * rows.sum_values) / determinant;
  const Vec free_shift = (rows.sum_values / slope - fit.g) / rows.sum_weights;
  // All codes the same: no slope.
  const Vec wanted =
      select(determinant > rows.sum_weights * fit.gg * 0x1p-16F, free_shift, choice.shift);
  const Vec shift = nearest_shift(wanted);
  const Vec product = fit.gx + shift * rows.sum_values;
  const Vec square = fit.gg + shift * (2 * fit.g + shift * rows.sum_weights);
  return {storable(product / square), shift};
}

// The best of what has been tried.
struct Best {
  Choice choice;
  Vec error;
};

template <typename Points>
static inline Fit try_choice(const Rows& rows, const Choice& choice, Best& best) {
  const Fit found = fit<Points>(rows, choice);
  const IntVec better = found.error < best.error;
  best.error = select(better, found.error, best.error);
  best.choice.scale = select(better, choice.scale, best.choice.scale);
  best.choice.shift = select(better, choice.shift, best.choice.shift);
  return found;
}

// A choice, and the one that least squares make of its codes.
template <typename Points>
static inline void try_both(const Rows& rows, const Choice& choice, Best& best) {
  const Fit found = try_choice<Points>(rows, choice, best);
  try_choice<Points>(rows, refine(rows, found, choice), best);
}

template <typename Points>
static inline Choice search(const Rows& rows) {
  Best best{{}, set1(3.4e38F)};
  for (const auto& at : Points::kStarts) try_both<Points>(rows, Points::start(rows, at), best);
  for (const Move& move : Points::kMoves) {
    try_both<Points>(rows,
                     {storable(best.choice.scale * move.scale),
                      clamped(best.choice.shift + move.shift * kShiftStep)},
                     best);
  }
  return best.choice;
}

template <typename Points>
static inline void store_rows(const Rows& rows, const Choice& choice, int first,
                              BlockEncoding& encoding) {
  const IntVec none = choice.scale == 0;
  const IntVec scale = bits_of(choice.scale) & ~none;
  const IntVec shift = __builtin_convertvector(choice.shift, IntVec) & ~none;
  __builtin_memcpy(&encoding.scales[first], &scale, sizeof(scale));
  __builtin_memcpy(&encoding.shifts[first], &shift, sizeof(shift));
  const Vec inverse = 1 / choice.scale;
  for (int i = 0; i < kBlockColumns; ++i) {
    const IntVec nearest = Points::nearest_code(rows.values[i] * inverse - choice.shift);
    const IntVec code = none ? IntVec{} + Points::kNoCode : nearest;
    __builtin_memcpy(&encoding.codes[i][first], &code, sizeof(code));
  }
}

template <typename Points>
void search_block(const WeightBlock& block, BlockEncoding& encoding) {
  for (int first = 0; first < kBlockRows; first += kLanes) {
    Rows rows;
    load_rows(block, first, rows);
    store_rows<Points>(rows, search<Points>(rows), first, encoding);
  }
}

// Of two rows, `kHalf` apart, the squares of kHalf rows and columns beside the diagonal change
// places.
template <int kHalf, int... kLane>
static inline void exchange(Vec& upper, Vec& lower, std::integer_sequence<int, kLane...>) {
  const Vec a = upper, b = lower;
  upper = __builtin_shufflevector(a, b, (kLane & kHalf ? kLanes + kLane - kHalf : kLane)...);
  lower = __builtin_shufflevector(a, b, (kLane & kHalf ? kLanes + kLane : kLane + kHalf)...);
}

// Rows become columns, in squares of one, two and more.
template <int kHalf = 1>
static inline void transpose(Vec (&rows)[kLanes]) {
  if constexpr (kHalf < kLanes) {
    for (int row = 0; row < kLanes; ++row) {
      if ((row & kHalf) != 0) continue;
      exchange<kHalf>(rows[row], rows[row + kHalf], std::make_integer_sequence<int, kLanes>());
    }
    transpose<2 * kHalf>(rows);
  }
}

void gather(const float* const* rows, int64_t first, WeightBlock& block) {
  for (int row = 0; row < kBlockRows; row += kLanes) {
    for (int column = 0; column < kBlockColumns; column += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        __builtin_memcpy(&square[i], rows[row + i] + first + column, sizeof(Vec));
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        __builtin_memcpy(&block.values[column + i][row], &square[i], sizeof(Vec));
      }
    }
  }
  block.columns = kBlockColumns;
}

bool are_within(const float* values, int64_t count, float most) {
  IntVec beyond{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vec v;
    __builtin_memcpy(&v, values + i, sizeof(v));
    beyond |= ~(magnitude(v) <= most);
  }
  bool are = true;
  for (; i < count; ++i) are &= __builtin_fabsf(values[i]) <= most;
  for (int lane = 0; lane < kLanes; ++lane) are &= beyond[lane] == 0;
  return are;
}

void largest(const WeightBlock& block, float* out) {
  for (int first = 0; first < kBlockRows; first += kLanes) {
    Vec most{};
    for (const auto& column : block.values) {
      Vec v;
      __builtin_memcpy(&v, &column[first], sizeof(v));
      most = select(magnitude(v) > most, magnitude(v), most);
    }
    __builtin_memcpy(out + first, &most, sizeof(most));
  }
}

// A scale that was rounded down puts the largest value beyond the last code.
static inline IntVec q8_code(Vec value, Vec scale) {
  constexpr float kMost = kQ8Zero - 1;
  const Vec wanted = to_whole(value / scale, 1);
  const Vec from_below = select(wanted > -kMost, wanted, set1(-kMost));
  const Vec code = select(from_below < kMost, from_below, set1(kMost));
  return __builtin_convertvector(code, IntVec) + kQ8Zero;
}

// Four columns of a row are the bytes of one number.
void q8_codes(const WeightBlock& block, const float* scales,
              uint8_t (*codes)[kBlockRows][kQuadColumns]) {
  for (int first = 0; first < kBlockRows; first += kLanes) {
    Vec scale;
    __builtin_memcpy(&scale, scales + first, sizeof(scale));
    for (int quad = 0; quad < kQuadsPerBlock; ++quad) {
      IntVec bytes{};
      for (int i = 0; i < kQuadColumns; ++i) {
        Vec v;
        __builtin_memcpy(&v, &block.values[quad * kQuadColumns + i][first], sizeof(v));
        bytes |= q8_code(v, scale) << (8 * i);
      }
      __builtin_memcpy(codes[quad][first], &bytes, sizeof(bytes));
    }
  }
}

constexpr BlockEncoders kEncoders{.isa = TRTMC_STRING(TRTMC_ISA),
                                  .gather = gather,
                                  .are_within = are_within,
                                  .largest = largest,
                                  .q8_codes = q8_codes,
                                  .q4 = search_block<Q4Points>,
                                  .q6 = search_block<Q6Points>};

}  // namespace

const BlockEncoders& block_encoders() { return kEncoders; }

}  // namespace trtmc::TRTMC_ISA
