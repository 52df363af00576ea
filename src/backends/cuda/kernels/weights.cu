// One block a row of work: a panel, a token. Both run rarely or move little.
#include "backends/cuda/kernels/quantized.cuh"
#include "backends/cuda/kernels/weights.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPairsOfStep = kStepColumns / 2;

// Where a word lies: of a row and a pair of a step's columns. Lane 4 g + t has rows 2 g and 2 g + 1
// (those of a panel are rows g and g + 8 of the instruction) and the pairs t and t + 4.
__device__ __forceinline__ int64_t word_of(int row, int column_pair, int steps) {
  const int pair = column_pair % kPairsOfStep;
  const int64_t part = weight_part(row / kPanelRows, column_pair / kPairsOfStep, steps);
  const int lane = row % kPanelRows / 2 * 4 + pair % 4;
  return (part + lane) * 4 + row % 2 + pair / 4 * 2;
}

__global__ void pack_fragments_kernel(const __grid_constant__ PackFragmentsArgs args) {
  const int panel = static_cast<int>(blockIdx.x);
  const uint32_t* from = args.from + int64_t{panel} * args.pairs * kPanelRows;
  for (int i = static_cast<int>(threadIdx.x); i < args.pairs * kPanelRows; i += kThreads) {
    const int row = (panel * kPanelRows + i % kPanelRows) * args.row_distance + args.first_row;
    args.to[word_of(row, i / kPanelRows, args.steps)] = from[i];
  }
}

template <WeightFormat kFormat>
struct GroupOf {
  using Type = Q8Group;
};
template <>
struct GroupOf<WeightFormat::kQ4> {
  using Type = Q4Group;
};

// Both codes of a pair of a group's columns: in a byte each, or together.
__device__ __forceinline__ ushort2 pair_of(const Q8Group& group, int row, int pair) {
  const uint8_t* codes = &group.codes[pair / 2][row][pair % 2 * 2];
  return make_ushort2(codes[0], codes[1]);
}
__device__ __forceinline__ uint8_t pair_of(const Q4Group& group, int row, int pair) {
  constexpr int kPairs = kBlockColumns / 2;
  const uint8_t* codes = &group.codes[pair % kPairs / 2][row][pair % 2 * 2];
  const int shift = pair / kPairs * 4;
  return static_cast<uint8_t>((codes[0] >> shift & 15) | (codes[1] >> shift & 15) << 4);
}
__device__ __forceinline__ void store_pair(uint8_t* to, ushort2 codes) {
  to[0] = static_cast<uint8_t>(codes.x);
  to[2] = static_cast<uint8_t>(codes.y);
}
__device__ __forceinline__ void store_pair(uint8_t* to, uint8_t codes) { *to = codes; }

template <WeightFormat kFormat>
__global__ void pack_quantized_kernel(const __grid_constant__ PackQuantizedArgs args) {
  using Group = typename GroupOf<kFormat>::Type;
  constexpr int kPairs = kBlockColumns / 2;
  const int panel = static_cast<int>(blockIdx.x);
  const Group* groups = static_cast<const Group*>(args.from) + int64_t{panel} * args.groups;
  for (int i = static_cast<int>(threadIdx.x); i < args.groups * 2 * kPairs * kPanelRows;
       i += kThreads) {
    const int row = i % kPanelRows, pair = i / kPanelRows % (2 * kPairs);
    const int index = i / kPanelRows / (2 * kPairs);
    const Group& group = groups[index];
    const int block = pair / kPairs;
    const int to_row = (panel * kPanelRows + row) * args.row_distance + args.first_row;
    uint8_t* to = static_cast<uint8_t*>(args.to) +
                  block_of<kFormat>(to_row, (index * 2 + block) * kBlockColumns, args.steps);
    store_pair(to + pair_byte<kFormat>(to_row % kPanelRows, pair % kPairs),
               pair_of(group, row, pair));
    if (pair % kPairs == 0) {
      *reinterpret_cast<uint16_t*>(to + scale_byte<kFormat>(to_row % kPanelRows)) =
          group.scales[block][row];
    }
  }
}

template <WeightFormat kFormat>
__device__ __forceinline__ float quantized_value(const EmbedArgs& args, int row, int column) {
  const auto* block =
      static_cast<const uint8_t*>(args.fragments) + block_of<kFormat>(row, column, args.steps);
  const int pair = column % kBlockColumns / 2;
  const uint8_t* codes = block + pair_byte<kFormat>(row % kPanelRows, pair);
  const uint16_t bits =
      *reinterpret_cast<const uint16_t*>(block + scale_byte<kFormat>(row % kPanelRows));
  if constexpr (kFormat == WeightFormat::kQ8) {
    return __fmul_rn(floats_of(bits).x, static_cast<float>(codes[column % 2 * 2] - kQ8Zero));
  } else {
    const int code = column % 2 == 0 ? *codes & 15 : *codes >> 4;
    return __fmul_rn(floats_of(shifted_scale_bits(bits)).x,
                     grid_point(code) + static_cast<float>(scale_shift(bits)));
  }
}

__device__ __forceinline__ float fragment_value(const EmbedArgs& args, int row, int column) {
  using enum WeightFormat;
  if (args.format == kQ8) return quantized_value<kQ8>(args, row, column);
  if (args.format == kQ4) return quantized_value<kQ4>(args, row, column);
  const auto* words = static_cast<const uint32_t*>(args.fragments);
  const uint32_t values = words[word_of(row, column / 2, args.steps)];
  return column % 2 == 0 ? bf16_low(values) : bf16_high(values);
}

__global__ void embed_kernel(const __grid_constant__ EmbedArgs args) {
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const int row = args.tokens[token];
  for (int i = static_cast<int>(threadIdx.x); i < args.width; i += kThreads) {
    const int64_t place = (int64_t{row / kPanelRows} * args.width + i) * kPanelRows;
    args.out[token * args.out_stride + i] = args.fragments != nullptr
                                                ? fragment_value(args, row, i)
                                                : args.panels[place + row % kPanelRows];
  }
}

}  // namespace

void launch_pack_fragments(const PackFragmentsArgs& args, const Launch& how) {
  launch(pack_fragments_kernel, dim3(static_cast<unsigned>(args.num_panels)), dim3(kThreads), 0,
         how, args);
}

void launch_pack_quantized(const PackQuantizedArgs& args, const Launch& how) {
  const auto kernel = args.format == WeightFormat::kQ8 ? pack_quantized_kernel<WeightFormat::kQ8>
                                                       : pack_quantized_kernel<WeightFormat::kQ4>;
  launch(kernel, dim3(static_cast<unsigned>(args.num_panels)), dim3(kThreads), 0, how, args);
}

void launch_embed(const EmbedArgs& args, const Launch& how) {
  launch(embed_kernel, dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
