#include "backends/step_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"

namespace trtmc {
namespace {

// More than a process can address: the sizes of what lies in KV memory never overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 47;

// Of one head at one position.
uint64_t kv_head_bytes(KvType type, int head_dim) {
  const auto elements = static_cast<uint64_t>(head_dim);
  switch (type) {
    case KvType::kF32:
      return 4 * elements;
    case KvType::kBF16:
      return 2 * elements;
    case KvType::kQ8:
    case KvType::kFp8:
      return elements + sizeof(float);  // And their scale.
  }
  return 0;
}

void check_sequence(const StepBatch& batch, size_t sequence, int context_length,
                    const Limits& limits) {
  const int32_t start = batch.sequence_starts[sequence];
  const int32_t end = batch.sequence_starts[sequence + 1];
  TRTMC_CHECK(start < end, "a sequence of the step has no token");
  for (int32_t i = start; i < end; ++i) {
    const int32_t position = batch.positions[static_cast<size_t>(i)];
    TRTMC_CHECK(position >= 0 && position < context_length, "a position beyond the context");
    TRTMC_CHECK(position == batch.positions[static_cast<size_t>(start)] + (i - start),
                "positions of a sequence are consecutive");
  }
  const int last_block = batch.positions[static_cast<size_t>(end - 1)] / limits.block_size;
  TRTMC_CHECK(last_block < batch.max_blocks, "a block table too short for its positions");
  for (int block = 0; block <= last_block; ++block) {
    const BlockId id = batch.block_tables[sequence * static_cast<size_t>(batch.max_blocks) +
                                          static_cast<size_t>(block)];
    TRTMC_CHECK(id >= 0 && id < limits.num_blocks, "a block that does not exist");
  }
}

}  // namespace

uint64_t kv_block_bytes(const DecoderSpec& spec, KvType type, int block_size) {
  return uint64_t{2} * static_cast<uint64_t>(spec.num_layers()) *
         static_cast<uint64_t>(spec.num_kv_heads) * static_cast<uint64_t>(block_size) *
         kv_head_bytes(type, spec.head_dim);
}

Limits make_limits(const DecoderSpec& spec, const ExecutorOptions& options, int block_size,
                   uint64_t block_bytes, int tokens_per_step) {
  const int context = options.context_length > 0 ? options.context_length : spec.context_length;
  if (context > spec.context_length) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a context of {} tokens was asked for, but the model has {}", context,
                            spec.context_length));
  }
  const auto size = static_cast<uint64_t>(block_size);
  uint64_t num_blocks = (static_cast<uint64_t>(context) + size - 1) / size;
  if (options.kv_memory_bytes > 0) num_blocks = options.kv_memory_bytes / block_bytes;
  if (num_blocks == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("KV memory of {} bytes holds no block of {} positions, which has {}",
                            options.kv_memory_bytes, block_size, block_bytes));
  }
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<BlockId>::max());
  num_blocks = std::min(num_blocks, kMost);
  if (num_blocks > kMostBytes / block_bytes) {
    throw Error(
        ErrorCode::kExhausted,
        fmt::format("{} KV blocks of {} bytes are beyond all memory", num_blocks, block_bytes),
        "ask for a shorter context or less KV memory");
  }
  const int num_sequences = std::max(1, options.max_sequences_per_step);
  return {.num_blocks = static_cast<int>(num_blocks),
          .block_size = block_size,
          .max_tokens_per_step = options.max_tokens_per_step > 0
                                     ? options.max_tokens_per_step
                                     : std::max(tokens_per_step, num_sequences),
          .max_sequences_per_step = num_sequences};
}

void check_step(const StepBatch& batch, const DecoderSpec& spec, const Limits& limits) {
  const size_t num_tokens = batch.tokens.size();
  TRTMC_CHECK(num_tokens > 0, "a step without tokens");
  TRTMC_CHECK(num_tokens <= static_cast<size_t>(limits.max_tokens_per_step), "too many tokens");
  TRTMC_CHECK(batch.positions.size() == num_tokens, "one position for each token");
  TRTMC_CHECK(batch.sequence_starts.size() >= 2, "a step without sequences");
  const size_t num_sequences = batch.sequence_starts.size() - 1;
  TRTMC_CHECK(num_sequences <= static_cast<size_t>(limits.max_sequences_per_step),
              "too many sequences");
  TRTMC_CHECK(batch.sequence_starts.front() == 0 &&
                  batch.sequence_starts.back() == static_cast<int32_t>(num_tokens),
              "the sequences do not cover the step");
  TRTMC_CHECK(batch.max_blocks > 0 && batch.block_tables.size() ==
                                          num_sequences * static_cast<size_t>(batch.max_blocks),
              "block tables of another shape");
  for (const TokenId token : batch.tokens) {
    TRTMC_CHECK(token >= 0 && token < spec.vocab_size, "a token outside the vocabulary");
  }
  for (size_t s = 0; s < num_sequences; ++s) check_sequence(batch, s, spec.context_length, limits);
  int32_t previous = -1;
  for (const int32_t row : batch.logits_rows) {
    TRTMC_CHECK(row > previous && row < static_cast<int32_t>(num_tokens),
                "rows of logits are tokens of the step, rising");
    previous = row;
  }
  TRTMC_CHECK(std::ranges::all_of(batch.adapters, [](int32_t id) { return id == 0; }),
              "an adapter, which no backend here has");
}

}  // namespace trtmc
