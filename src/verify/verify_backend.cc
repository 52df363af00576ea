#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "backends/backend_loader.h"
#include "base/error.h"
#include "verify/metrics.h"
#include "verify/verify.h"
#include "verify/worst.h"

namespace trtmc {
namespace {

constexpr std::array kPromptLengths{5, 33, 9};  // One is longer than the largest KV block, 32.
constexpr int kDecodeSteps = 3;
constexpr int kShortestContext = *std::ranges::max_element(kPromptLengths) + kDecodeSteps;
constexpr int kChunk = 7;  // Divides nothing: chunks end in the middle of blocks and of prompts.
constexpr double kRelativeL2 = 1e-4;
constexpr int kPositions = 512;  // KV memory for so many is room for three sequences in any blocks.

// A piece of one sequence in a step.
struct Piece {
  int sequence, start, count;
};

// The logits of every token, by sequence and position.
using Rows = std::map<std::pair<int, int>, std::vector<float>>;

// Fixed tokens, spread over the vocabulary.
TokenId token_at(int sequence, int position, int vocab_size) {
  const uint64_t index = static_cast<uint64_t>(sequence) * 1000 + static_cast<uint64_t>(position);
  const uint64_t hash = (index + 1) * uint64_t{0x9E3779B97F4A7C15};
  return static_cast<TokenId>((hash >> 33) % static_cast<uint64_t>(vocab_size));
}

void run_step(Executor& executor, int vocab_size, std::span<const Piece> pieces, Rows& rows) {
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions, starts{0}, logits_rows;
  std::vector<BlockId> tables;
  const int blocks = executor.limits().num_blocks / static_cast<int>(kPromptLengths.size());
  for (const Piece& piece : pieces) {
    for (int position = piece.start; position < piece.start + piece.count; ++position) {
      logits_rows.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back(token_at(piece.sequence, position, vocab_size));
      positions.push_back(position);
    }
    starts.push_back(static_cast<int32_t>(tokens.size()));
    for (int block = 0; block < blocks; ++block) tables.push_back(piece.sequence * blocks + block);
  }
  executor.submit({.tokens = tokens,
                   .positions = positions,
                   .sequence_starts = starts,
                   .block_tables = tables,
                   .max_blocks = blocks,
                   .logits_rows = logits_rows,
                   .adapters = {}});
  const Logits& logits = executor.wait();
  int row = 0;
  for (const Piece& piece : pieces) {
    for (int i = 0; i < piece.count; ++i) {
      std::vector<float>& out = rows[{piece.sequence, piece.start + i}];
      out.resize(static_cast<size_t>(vocab_size));
      logits.copy_row(row++, out);
    }
  }
}

// All prompts in one step, then all sequences a token at a time, side by side.
Rows run_batched(Executor& executor, int vocab_size) {
  Rows rows;
  for (int step = 0; step <= kDecodeSteps; ++step) {
    std::vector<Piece> pieces;
    for (int s = 0; s < static_cast<int>(kPromptLengths.size()); ++s) {
      const int length = kPromptLengths[static_cast<size_t>(s)];
      pieces.push_back(step == 0 ? Piece{s, 0, length} : Piece{s, length + step - 1, 1});
    }
    run_step(executor, vocab_size, pieces, rows);
  }
  return rows;
}

// Each sequence by itself, in chunks.
Rows run_alone(Executor& executor, int vocab_size) {
  Rows rows;
  for (int s = 0; s < static_cast<int>(kPromptLengths.size()); ++s) {
    const int end = kPromptLengths[static_cast<size_t>(s)] + kDecodeSteps;
    for (int start = 0; start < end; start += kChunk) {
      const Piece piece{s, start, std::min(kChunk, end - start)};
      run_step(executor, vocab_size, std::span(&piece, 1), rows);
    }
  }
  return rows;
}

std::string place(const std::pair<int, int>& key) {
  return fmt::format("sequence {}, position {}", key.first, key.second);
}

Check compare(std::string name, const Rows& rows, const Rows& reference, double threshold) {
  Worst worst(true);
  for (const auto& [key, row] : rows) worst.take(relative_l2(row, reference.at(key)), place(key));
  return worst.check(std::move(name), threshold);
}

Check compare_bits(std::string name, const Rows& rows, const Rows& others) {
  int different = 0;
  std::string first = fmt::format("of {}", rows.size());
  for (const auto& [key, row] : rows) {
    if (std::memcmp(row.data(), others.at(key).data(), row.size() * sizeof(float)) == 0) continue;
    if (++different == 1) first = "first in " + place(key);
  }
  return {std::move(name), static_cast<double>(different), 0, true, first};
}

Rows run_reference(const Bundle& bundle, const ExecutorOptions& options) {
  const auto reference = find_backend("reference", bundle.manifest()).load(bundle, options);
  return run_batched(*reference, bundle.spec().vocab_size);
}

// How far a right backend may be from `expected`, the reference's rows. Where keys and values are
// rounded, a last bit of float32 decides now and then which way one of them is: that moves the
// logits by less than all of the rounding does.
double allowed_distance(const Bundle& bundle, ExecutorOptions options, const Rows& expected) {
  if (options.kv_type == KvType::kF32) return kRelativeL2;
  options.kv_type = KvType::kF32;
  double largest = kRelativeL2;
  for (const auto& [key, row] : run_reference(bundle, options)) {
    largest = std::max(largest, relative_l2(expected.at(key), row));
  }
  return largest;
}

}  // namespace

VerifyReport verify_backend(const Bundle& bundle, std::string_view backend,
                            const ExecutorOptions& options) {
  const DecoderSpec& spec = bundle.spec();
  if (spec.context_length < kShortestContext) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: a context of {} tokens, but backends are compared on sequences of {}",
                    bundle.path().string(), spec.context_length, kShortestContext));
  }
  ExecutorOptions ours = options;
  ours.context_length = std::min(spec.context_length, kPositions);
  ours.kv_memory_bytes = static_cast<uint64_t>(kPositions) *
                         static_cast<uint64_t>(spec.num_layers()) *
                         static_cast<uint64_t>(spec.kv_width()) * 2 * sizeof(float);
  const Backend& tested = find_backend(backend, bundle.manifest());
  Rows batched, alone;
  {
    const auto executor = tested.load(bundle, ours);
    batched = run_batched(*executor, spec.vocab_size);
    alone = run_alone(*executor, spec.vocab_size);
  }
  const Rows expected = run_reference(bundle, ours);
  const double allowed = allowed_distance(bundle, ours, expected);
  return {{compare("logits against reference, relative L2, worst position, batched", batched,
                   expected, allowed),
           compare("logits against reference, relative L2, worst position, alone in chunks", alone,
                   expected, allowed),
           compare_bits("positions whose bits depend on batch or chunks", batched, alone)}};
}

}  // namespace trtmc
