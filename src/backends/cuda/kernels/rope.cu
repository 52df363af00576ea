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

__global__ void store_kernel(const __grid_constant__ StoreArgs args) {
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const int position = args.positions[token];
  const int block = args.block_tables[int64_t{args.token_sequences[token]} * args.table_stride +
                                      position / KvCacheView::kBlockSize];
  for (int i = static_cast<int>(threadIdx.x); i < args.cache.num_kv_heads * args.head_dim;
       i += kThreads) {
    const int64_t offset = args.cache.place(position % KvCacheView::kBlockSize, i % args.head_dim);
    const int head = i / args.head_dim;
    store_kv(args.cache, args.cache.head_start(block, args.layer, 0, head) + offset,
             args.k[token * args.stride + i]);
    store_kv(args.cache, args.cache.head_start(block, args.layer, 1, head) + offset,
             args.v[token * args.stride + i]);
  }
}

}  // namespace

void launch_rope(const RopeArgs& args, const Launch& how) {
  launch(rope_kernel, dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads), 0, how, args);
}

void launch_store(const StoreArgs& args, const Launch& how) {
  launch(store_kernel, dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
