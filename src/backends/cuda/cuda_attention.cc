#include "backends/cuda/cuda_attention.h"

#include <cmath>

#include "backends/cuda/kernels/rope.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kScratch = "memory for activations on the GPU";
// Of what chunks leave for each other. Where it does not do, a block walks all chunks.
constexpr size_t kPartialBytes = size_t{64} << 20;

}  // namespace

CudaAttention::CudaAttention(const CudaOpsParts& parts)
    : parts_(parts),
      partial_(kPartialBytes / sizeof(float), kScratch),
      counters_(kPartialBytes / 4096, kScratch, true) {}

void CudaAttention::begin(const StepView& step, const Launch& how) {
  step_ = step;
  how_ = how;
  const auto partials =
      static_cast<size_t>(step.num_tiles) * static_cast<size_t>(parts_.spec.num_kv_heads);
  const size_t floats = partials * static_cast<size_t>(chunk_bucket(step.last_position)) *
                        kFewQueryRows *
                        static_cast<size_t>(parts_.cache.view().padded_dim + kPartialExtras);
  splits_ = step.one_each && floats <= partial_.count() && partials <= counters_.count();
}

void CudaAttention::rotate(float* x, int64_t stride, int num_heads) const {
  launch_rope({.x = x,
               .stride = stride,
               .num_tokens = step_.num_tokens,
               .num_heads = num_heads,
               .head_dim = parts_.spec.head_dim,
               .half = parts_.rope.half(),
               .table = parts_.rope.data(),
               .positions = step_.positions},
              how_);
}

AttentionArgs CudaAttention::args_of(int layer, const LayerSpec& spec, const Heads& heads,
                                     const Output& out) const {
  AttentionArgs args{};
  args.cache = parts_.cache.view();
  args.layer = layer;
  args.head_dim = parts_.spec.head_dim;
  args.num_heads = parts_.spec.num_heads;
  args.sliding_window = spec.sliding_window;
  args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(parts_.spec.head_dim)));
  args.q = heads.q;
  args.stride = heads.stride;
  args.positions = step_.positions;
  args.block_tables = step_.block_tables;
  args.table_stride = step_.table_stride;
  args.tiles = step_.tiles;
  args.num_tiles = step_.num_tiles;
  args.table = parts_.rope.data();
  args.num_terms = parts_.num_terms;
  args.partial = partial_.data();
  args.counters = counters_.data();
  args.out = out.rows;
  args.out_stride = out.stride;
  args.out_terms = out.terms;
  return args;
}

void CudaAttention::store(const AttentionArgs& args, const Heads& heads) const {
  launch_store({.cache = args.cache,
                .layer = args.layer,
                .head_dim = args.head_dim,
                .k = heads.k,
                .v = heads.v,
                .stride = heads.stride,
                .num_tokens = step_.num_tokens,
                .positions = step_.positions,
                .token_sequences = step_.token_sequences,
                .block_tables = step_.block_tables,
                .table_stride = step_.table_stride},
               how_);
}

void CudaAttention::attend(int layer, const LayerSpec& spec, const Heads& heads,
                           const Output& out) const {
  AttentionArgs args = args_of(layer, spec, heads, out);
  if (splits_) {
    args.num_chunks = chunk_bucket(step_.last_position);
    args.k = heads.k;
    args.v = heads.v;
    args.half = heads.rotated ? 0 : parts_.rope.half();
  } else {
    if (!heads.rotated) {
      rotate(heads.q, heads.stride, parts_.spec.num_heads);
      rotate(heads.k, heads.stride, parts_.spec.num_kv_heads);
    }
    store(args, heads);
  }
  if (!splits_ && attends_by_wgmma(args.cache, args.head_dim, args.num_terms, parts_.device)) {
    launch_attention_wgmma(args, how_);
  } else if (attends_on_tensor_cores(args.cache, args.head_dim,
                                     parts_.device.shared_bytes_per_block)) {
    launch_attention_bf16(args, how_);
  } else {
    launch_attention(args, how_);
  }
}

}  // namespace trtmc::cuda
