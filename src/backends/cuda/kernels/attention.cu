// Attention in float32. A block has some rows of queries in shared memory and takes a chunk of
// positions: four threads share a position's dot products, 16 bytes of the key at a time; then a
// warp a row takes the softmax; then a thread has four components of the mixture.
#include <cmath>

#include "backends/cuda/kernels/attention_tile.cuh"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / static_cast<int>(kWarp);
constexpr int kQuad = 4;                                   // Threads that share a position.
constexpr int kGroupPositions = kChunkPositions / kWarps;  // Of a mixture's partial sums.
static_assert(kThreads == kChunkPositions * kQuad);
static_assert(kMostHeadDim <= 4 * static_cast<int>(kWarp));

template <int kRows>
struct Shared {
  float q[kRows][kMostHeadDim];
  float scores[kRows][kChunkPositions];  // Then what they weigh.
  float largest[kRows];
  float sum[kRows];
  TileRows<kRows> rows;
  bool is_last;
};

// 16 bytes of the cache as floats. scale: of fp8.
template <KvType kType>
struct Part {
  static constexpr int kValues = 16 / kv_component_bytes(kType);
  static __device__ __forceinline__ void load(const std::byte* at, float scale,
                                              float (&to)[kValues]) {
    const uint4 v = *reinterpret_cast<const uint4*>(at);
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kType == KvType::kFp8) {
        widen_four(words[i], scale, to + 4 * i);
      } else if constexpr (kType == KvType::kBF16) {
        to[2 * i] = bf16_low(words[i]);
        to[2 * i + 1] = bf16_high(words[i]);
      } else {
        to[i] = __uint_as_float(words[i]);
      }
    }
  }
};

// Four components of a value.
template <KvType kType>
__device__ __forceinline__ float4 load_four(const std::byte* at, float scale) {
  if constexpr (kType == KvType::kFp8) {
    float4 v;
    widen_four(*reinterpret_cast<const uint32_t*>(at), scale, &v.x);
    return v;
  } else if constexpr (kType == KvType::kBF16) {
    const uint2 v = *reinterpret_cast<const uint2*>(at);
    return make_float4(bf16_low(v.x), bf16_high(v.x), bf16_low(v.y), bf16_high(v.y));
  } else {
    return *reinterpret_cast<const float4*>(at);
  }
}

__device__ __forceinline__ float4 multiplied_add(float a, float4 b, float4 c) {
  return make_float4(__fmaf_rn(a, b.x, c.x), __fmaf_rn(a, b.y, c.y), __fmaf_rn(a, b.z, c.z),
                     __fmaf_rn(a, b.w, c.w));
}
__device__ __forceinline__ float4 added(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}
__device__ __forceinline__ float4 scaled(float a, float4 b) {
  return make_float4(__fmul_rn(a, b.x), __fmul_rn(a, b.y), __fmul_rn(a, b.z), __fmul_rn(a, b.w));
}

// What a row has of the chunks so far, four components a lane.
struct Mixture {
  float largest = -INFINITY;
  float sum = 0;
  float4 values = {0, 0, 0, 0};

  __device__ __forceinline__ void join(float chunk_largest, float chunk_sum, float4 chunk_values) {
    if (chunk_sum == 0) return;  // It sees nothing of the chunk.
    const float new_largest = fmaxf(largest, chunk_largest);
    const float ours = expf(__fsub_rn(largest, new_largest));
    const float theirs = expf(__fsub_rn(chunk_largest, new_largest));
    sum = __fmaf_rn(chunk_sum, theirs, __fmul_rn(sum, ours));
    values = multiplied_add(theirs, chunk_values, scaled(ours, values));
    largest = new_largest;
  }
};

template <int kRows, KvType kType>
struct Attention : TileWork {
  Shared<kRows>& shared;

  __device__ __forceinline__ Attention(const AttentionArgs& of, const QueryTile& query_tile,
                                       Shared<kRows>& memory)
      : TileWork(of, query_tile), shared(memory) {
    find_rows(shared.rows, kRows, kThreads);
  }

  __device__ __forceinline__ void load_queries() {
    __syncthreads();
    for (int i = thread; i < kRows * args.cache.padded_dim; i += kThreads) {
      const int row = i / args.cache.padded_dim;
      const int d = i % args.cache.padded_dim;
      const bool exists = d < args.head_dim && shared.rows.position[row] >= 0;
      shared.q[row][d] = exists ? query(shared.rows, row, d) : 0;
    }
    __syncthreads();
  }

  // Scores of a chunk's positions for every row.
  __device__ __forceinline__ void score(int chunk) {
    using CachePart = Part<kType>;
    constexpr int kParts = kMostHeadDim / (CachePart::kValues * kQuad);
    const int position = chunk * kChunkPositions + thread / kQuad;
    const int quarter = thread % kQuad;
    float key[kParts][CachePart::kValues] = {};
    if (position <= last_position) {
      const std::byte* head = head_at(0, position);
      const float scale = kType == KvType::kFp8 ? scale_at(head, position) : 0;
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int d = (i * kQuad + quarter) * CachePart::kValues;
        if (d >= args.cache.padded_dim) break;
        CachePart::load(head + place<kType>(position, d), scale, key[i]);
      }
    }
#pragma unroll 4
    for (int row = 0; row < kRows; ++row) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int d = (i * kQuad + quarter) * CachePart::kValues;
        if (d >= args.cache.padded_dim) break;
#pragma unroll
        for (int j = 0; j < CachePart::kValues; j += 4) {
          const float4 q = *reinterpret_cast<const float4*>(&shared.q[row][d + j]);
          sum = __fmaf_rn(q.x, key[i][j], sum);
          sum = __fmaf_rn(q.y, key[i][j + 1], sum);
          sum = __fmaf_rn(q.z, key[i][j + 2], sum);
          sum = __fmaf_rn(q.w, key[i][j + 3], sum);
        }
      }
      sum = __fadd_rn(sum, __shfl_xor_sync(kFullMask, sum, 1));
      sum = __fadd_rn(sum, __shfl_xor_sync(kFullMask, sum, 2));
      if (quarter == 0) {
        shared.scores[row][thread / kQuad] = score_of(shared.rows.position[row], position, sum);
      }
    }
    __syncthreads();
  }

  // Scores become weights that sum to shared.sum.
  __device__ __forceinline__ void soften() {
    for (int row = warp(); row < kRows; row += kWarps) {
      const float a = shared.scores[row][lane()];
      const float b = shared.scores[row][lane() + kWarp];
      const float largest = warp_max(fmaxf(a, b));
      const float base = largest == -INFINITY ? 0 : largest;
      const float exp_a = expf(__fsub_rn(a, base));
      const float exp_b = expf(__fsub_rn(b, base));
      const float sum = warp_sum(__fadd_rn(exp_a, exp_b));
      shared.scores[row][lane()] = exp_a;
      shared.scores[row][lane() + kWarp] = exp_b;
      if (lane() == 0) {
        shared.largest[row] = largest;
        shared.sum[row] = sum;
      }
    }
    __syncthreads();
  }

  // A lane's four components of what the positions of one group add to a row. Positions that weigh
  // nothing are left out: nobody has written their values, or they are none of the row's business.
  __device__ __forceinline__ float4 group_mixture(int row, int group_index,
                                                  const float4 (&values)[kGroupPositions]) const {
    float4 mixed = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < kGroupPositions; ++i) {
      const float weight = shared.scores[row][group_index * kGroupPositions + i];
      if (weight != 0) mixed = multiplied_add(weight, values[i], mixed);
    }
    return mixed;
  }

  __device__ __forceinline__ void load_values(int chunk, int group_index,
                                              float4 (&values)[kGroupPositions]) const {
    const int d = lane() * 4;
#pragma unroll
    for (int i = 0; i < kGroupPositions; ++i) {
      const int position = chunk * kChunkPositions + group_index * kGroupPositions + i;
      values[i] = make_float4(0, 0, 0, 0);
      if (position > last_position || d >= args.cache.padded_dim) continue;
      const std::byte* head = head_at(1, position);
      const float scale = kType == KvType::kFp8 ? scale_at(head, position) : 0;
      values[i] = load_four<kType>(head + place<kType>(position, d), scale);
    }
  }

  // Four components of a finished row.
  __device__ __forceinline__ void store_row(int row, const Mixture& mixture) const {
    const int d = lane() * 4;
    if (shared.rows.position[row] < 0 || d >= args.head_dim) return;
    const float4 v = mixture.values;
    const float values[4] = {__fdiv_rn(v.x, mixture.sum), __fdiv_rn(v.y, mixture.sum),
                             __fdiv_rn(v.z, mixture.sum), __fdiv_rn(v.w, mixture.sum)};
    const int column = shared.rows.head[row] * args.head_dim + d;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      if (d + i >= args.head_dim) break;
      if (args.out != nullptr) {
        float* out = args.out + shared.rows.token[row] * args.out_stride + column + i;
        out[0] = values[i];
        out[1] = values[i + 1];
      } else if (args.num_terms == 1) {
        store_terms<1>(args.out_terms, shared.rows.token[row], column + i, values[i],
                       values[i + 1]);
      } else {
        store_terms<3>(args.out_terms, shared.rows.token[row], column + i, values[i],
                       values[i + 1]);
      }
    }
  }
};

// Many queries: a block walks all the chunks of its tile; each warp mixes two rows.
template <KvType kType>
__global__ void __launch_bounds__(kThreads)
    attend_whole_kernel(const __grid_constant__ AttentionArgs args) {
  constexpr int kRows = kManyQueryRows;
  constexpr int kRowsOfWarp = kRows / kWarps;
  __shared__ Shared<kRows> shared;
  release_successors();
  wait_for_predecessors();
  // The longest first, so that the last blocks are short.
  const int index = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  Attention<kRows, kType> work(args, args.tiles[index], shared);
  work.load_queries();
  Mixture mixtures[kRowsOfWarp];
  for (int chunk = work.first_position / kChunkPositions;
       chunk <= work.last_position / kChunkPositions; ++chunk) {
    work.score(chunk);
    work.soften();
    float4 totals[kRowsOfWarp];
    for (int group = 0; group < kWarps; ++group) {
      float4 values[kGroupPositions];
      work.load_values(chunk, group, values);
#pragma unroll
      for (int i = 0; i < kRowsOfWarp; ++i) {
        const float4 mixed = work.group_mixture(work.warp() * kRowsOfWarp + i, group, values);
        totals[i] = group == 0 ? mixed : added(totals[i], mixed);
      }
    }
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i) {
      const int row = work.warp() * kRowsOfWarp + i;
      mixtures[i].join(shared.largest[row], shared.sum[row], totals[i]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    work.store_row(work.warp() * kRowsOfWarp + i, mixtures[i]);
  }
}

// One query of each sequence: a block for each chunk, each warp mixes eight positions of every row.
template <KvType kType>
__global__ void __launch_bounds__(kThreads)
    attend_split_kernel(const __grid_constant__ AttentionArgs args) {
  constexpr int kRows = kFewQueryRows;
  __shared__ Shared<kRows> shared;
  __shared__ float4 mixed[kWarps][kRows][kWarp];
  release_successors();
  wait_for_predecessors();
  const int chunk = static_cast<int>(blockIdx.x);
  Attention<kRows, kType> work(args, args.tiles[blockIdx.z], shared);
  const int first_chunk = work.first_position / kChunkPositions;
  const int last_chunk = work.last_position / kChunkPositions;
  if (chunk < first_chunk || chunk > last_chunk) return;
  work.load_queries();
  if (args.k != nullptr && chunk == last_chunk) {
    NewPart<kType> part;
    part.load(work);
    part.store(work, [](int, int, float) {});
    __syncthreads();
  }

  float4 values[kGroupPositions];
  work.load_values(chunk, work.warp(), values);
  work.score(chunk);
  work.soften();
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    mixed[work.warp()][row][work.lane()] = work.group_mixture(row, work.warp(), values);
  }
  __syncthreads();
  const int row = work.warp();  // Of the first warps.
  float4 total = make_float4(0, 0, 0, 0);
  if (row < kRows) {
    total = mixed[0][row][work.lane()];
    for (int i = 1; i < kWarps; ++i) total = added(total, mixed[i][row][work.lane()]);
  }
  Mixture mixture;
  if (first_chunk == last_chunk) {
    if (row < kRows) {
      mixture.join(shared.largest[row], shared.sum[row], total);
      work.store_row(row, mixture);
    }
    return;
  }

  // [chunk][row][values, largest, sum]
  const int floats = args.cache.padded_dim + kPartialExtras;
  const int64_t index = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  float* partial = args.partial + index * args.num_chunks * kRows * floats;
  if (row < kRows) {
    float* to = partial + (int64_t{chunk} * kRows + row) * floats;
    if (work.lane() * 4 < args.cache.padded_dim) {
      *reinterpret_cast<float4*>(to + work.lane() * 4) = total;
    }
    if (work.lane() == 0) {
      to[args.cache.padded_dim] = shared.largest[row];
      to[args.cache.padded_dim + 1] = shared.sum[row];
    }
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = atomicAdd(&args.counters[index], 1) == last_chunk - first_chunk;
  }
  __syncthreads();
  if (!shared.is_last) return;
  __threadfence();
  if (row < kRows) {
#pragma unroll 4
    for (int i = first_chunk; i <= last_chunk; ++i) {
      const float* from = partial + (int64_t{i} * kRows + row) * floats;
      float4 of_chunk = make_float4(0, 0, 0, 0);
      if (work.lane() * 4 < args.cache.padded_dim) {
        of_chunk = __ldcg(reinterpret_cast<const float4*>(from + work.lane() * 4));
      }
      mixture.join(__ldcg(from + args.cache.padded_dim), __ldcg(from + args.cache.padded_dim + 1),
                   of_chunk);
    }
    work.store_row(row, mixture);
  }
  if (threadIdx.x == 0) args.counters[index] = 0;
}

template <KvType kType>
void launch_over(const AttentionArgs& args, const Launch& how) {
  const auto heads = static_cast<unsigned>(args.cache.num_kv_heads);
  const auto tiles = static_cast<unsigned>(args.num_tiles);
  if (args.num_chunks > 0) {
    launch(attend_split_kernel<kType>, dim3(static_cast<unsigned>(args.num_chunks), heads, tiles),
           dim3(kThreads), 0, how, args);
  } else {
    launch(attend_whole_kernel<kType>, dim3(tiles, heads), dim3(kThreads), 0, how, args);
  }
}

}  // namespace

void launch_attention(const AttentionArgs& args, const Launch& how) {
  if (args.cache.type == KvType::kFp8) {
    launch_over<KvType::kFp8>(args, how);
  } else if (args.cache.type == KvType::kBF16) {
    launch_over<KvType::kBF16>(args, how);
  } else {
    launch_over<KvType::kF32>(args, how);
  }
}

}  // namespace trtmc::cuda
