#include "backends/cuda/step_arrays.h"

#include <algorithm>

#include "backends/cuda/kernels/launch_plan.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

constexpr size_t kTileInts = sizeof(QueryTile) / sizeof(int32_t);

int divide_up(int a, int b) { return (a + b - 1) / b; }

// Room for the largest step.
size_t most_ints(const DecoderSpec& spec, const Limits& limits) {
  const auto tokens = static_cast<size_t>(limits.max_tokens_per_step);
  const auto sequences = static_cast<size_t>(limits.max_sequences_per_step);
  const auto group = static_cast<size_t>(spec.num_heads / spec.num_kv_heads);
  const size_t tiles = tokens * group / kFewQueryRows + tokens + sequences;
  // A table's width is that of the longest sequence, up to a power of two.
  const size_t blocks = 2 * static_cast<size_t>(divide_up(spec.context_length, kKvBlockSize)) + 2;
  return 4 * tokens + sequences * blocks + tiles * kTileInts + 64;
}

}  // namespace

StepArrays::StepArrays(const DecoderSpec& spec, const Limits& limits, int many_query_rows)
    : group_(spec.num_heads / spec.num_kv_heads),
      many_query_rows_(many_query_rows),
      host_(most_ints(spec, limits), "memory for steps"),
      device_(host_.span().size(), "memory for steps") {}

int32_t* StepArrays::take(size_t count) {
  int32_t* place = host_.data() + used_;
  used_ += (count + 3) / 4 * 4;
  TRTMC_CHECK(used_ <= host_.span().size(), "a step larger than the limits");
  return place;
}

const StepView& StepArrays::load(const StepBatch& batch, CUstream_st* stream) {
  used_ = 0;
  const auto on_device = [this](const int32_t* place) {
    return device_.data() + (place - host_.data());
  };
  const auto copied = [&](std::span<const int32_t> from) {
    int32_t* place = take(from.size());
    std::ranges::copy(from, place);
    return on_device(place);
  };
  const size_t num_sequences = batch.sequence_starts.size() - 1;
  view_ = {};
  view_.num_tokens = static_cast<int>(batch.tokens.size());
  view_.num_rows = static_cast<int>(batch.logits_rows.size());
  view_.one_each = batch.tokens.size() == num_sequences;
  view_.all_rows = batch.logits_rows.size() == batch.tokens.size();
  view_.last_position = std::ranges::max(batch.positions);
  view_.tokens = copied(batch.tokens);
  view_.positions = copied(batch.positions);
  view_.rows = copied(batch.logits_rows);
  int32_t* token_sequences = take(batch.tokens.size());
  view_.token_sequences = on_device(token_sequences);
  const int rows_of_tile = view_.one_each ? kFewQueryRows : many_query_rows_;
  for (size_t s = 0; s < num_sequences; ++s) {
    const int count = batch.sequence_starts[s + 1] - batch.sequence_starts[s];
    std::fill_n(token_sequences + batch.sequence_starts[s], count, static_cast<int32_t>(s));
    view_.num_tiles += divide_up(count * group_, rows_of_tile);
  }
  auto* tile = reinterpret_cast<QueryTile*>(take(static_cast<size_t>(view_.num_tiles) * kTileInts));
  view_.tiles = reinterpret_cast<const QueryTile*>(on_device(reinterpret_cast<int32_t*>(tile)));
  for (size_t s = 0; s < num_sequences; ++s) {
    const int first = batch.sequence_starts[s];
    const int count = batch.sequence_starts[s + 1] - first;
    for (int row = 0; row < count * group_; row += rows_of_tile) {
      *tile++ = {static_cast<int32_t>(s), first, count, row};
    }
  }
  constexpr int kBlocksOfChunk = kChunkPositions / kKvBlockSize;
  view_.table_stride = chunk_bucket(view_.last_position) * kBlocksOfChunk;
  const auto wanted = static_cast<size_t>(view_.table_stride);
  const auto given = static_cast<size_t>(batch.max_blocks);
  int32_t* tables = take(num_sequences * wanted);
  for (size_t s = 0; s < num_sequences; ++s) {
    std::copy_n(batch.block_tables.begin() + static_cast<ptrdiff_t>(s * given),
                std::min(wanted, given), tables + s * wanted);
  }
  view_.block_tables = on_device(tables);
  check_cuda(cudaMemcpyAsync(device_.data(), host_.data(), used_ * sizeof(int32_t),
                             cudaMemcpyHostToDevice, stream),
             "starting a step");
  return view_;
}

}  // namespace trtmc::cuda
