// One block a token: its heads are a few KB.
#include "backends/cuda/kernels/rope.cuh"
#include "backends/cuda/kernels/rope.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void rope_kernel(const __grid_constant__ RopeArgs args) {
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const auto* table =
      reinterpret_cast<const float2*>(args.table) + int64_t{args.positions[token]} * args.half;
  for (int i = static_cast<int>(threadIdx.x); i < args.num_heads * args.half; i += kThreads) {
    float* head = args.x + token * args.stride + i / args.half * args.head_dim;
    const int pair = i % args.half;
    const float2 turned = rotated(head[pair], head[pair + args.half], table[pair]);
    head[pair] = turned.x;
    head[pair + args.half] = turned.y;
  }
}

__device__ __forceinline__ int block_of(const StoreArgs& args, int token, int position) {
  return args.block_tables[int64_t{args.token_sequences[token]} * args.table_stride +
                           position / KvCacheView::kBlockSize];
}

template <KvType kType>
__global__ void store_kernel(const __grid_constant__ StoreArgs args) {
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const int position = args.positions[token];
  const int block = block_of(args, token, position);
  for (int i = static_cast<int>(threadIdx.x); i < args.cache.num_kv_heads * args.head_dim;
       i += kThreads) {
    const int place =
        args.cache.place<kType>(position % KvCacheView::kBlockSize, i % args.head_dim);
    const int head = i / args.head_dim;
    store_kv<kType>(args.cache.head(block, args.layer, 0, head) + place,
                    args.k[token * args.stride + i]);
    store_kv<kType>(args.cache.head(block, args.layer, 1, head) + place,
                    args.v[token * args.stride + i]);
  }
}

// A warp finds a key's or value's scale.
__global__ void store_fp8_kernel(const __grid_constant__ StoreArgs args) {
  constexpr int kWarpThreads = static_cast<int>(kWarp);
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const int position = args.positions[token];
  const int block = block_of(args, token, position);
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  for (int i = static_cast<int>(threadIdx.x) / kWarpThreads; i < 2 * args.cache.num_kv_heads;
       i += kThreads / kWarpThreads) {
    const int head = i / 2, side = i % 2;
    const float* from =
        (side == 0 ? args.k : args.v) + token * args.stride + int64_t{head} * args.head_dim;
    float x[kHeadParts] = {};
#pragma unroll
    for (int part = 0; part < kHeadParts; ++part) {
      const int d = part * kWarpThreads + lane;
      if (d < args.head_dim) x[part] = from[d];
    }
    store_fp8(args.cache, args.cache.head(block, args.layer, side, head),
              position % KvCacheView::kBlockSize, args.head_dim, lane, x, [](int, float) {});
  }
}

auto store_kernel_of(KvType type) {
  if (type == KvType::kFp8) return store_fp8_kernel;
  return type == KvType::kBF16 ? store_kernel<KvType::kBF16> : store_kernel<KvType::kF32>;
}

}  // namespace

void launch_rope(const RopeArgs& args, const Launch& how) {
  launch(rope_kernel, dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads), 0, how, args);
}

void launch_store(const StoreArgs& args, const Launch& how) {
  launch(store_kernel_of(args.cache.type), dim3(static_cast<unsigned>(args.num_tokens)),
         dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
