// What a backend is to everybody else: it loads a bundle onto a device, runs flat steps of tokens
// there, and gives logits back. Contract and way to write one: docs/adding_a_backend.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/kv_type.h"
#include "base/token.h"
#include "bundle/bundle.h"
#include "model/sampling.h"

namespace trtmc {

using BlockId = int32_t;

// One step's work, flat: the only thing a device sees. Borrowed until wait() returns. Sequence s
// owns the tokens [sequence_starts[s], sequence_starts[s + 1]), at least one, at consecutive rising
// positions.
struct StepBatch {
  std::span<const TokenId> tokens;           // [total_tokens]
  std::span<const int32_t> positions;        // [total_tokens]
  std::span<const int32_t> sequence_starts;  // [num_sequences + 1]
  std::span<const BlockId> block_tables;  // [num_sequences, max_blocks]: where position p lies, in
  int max_blocks;                         //   block p / block_size
  std::span<const int32_t> logits_rows;   // Indices of tokens whose logits are wanted, rising.
  std::span<const int32_t> adapters;      // [num_sequences]; empty or 0: none.
};

// Prompt scoring: the log-probability of `target` after the token of row `row`.
struct ScoreRow {
  int row;
  TokenId target;
  int top_logprobs;
};
struct TokenScore {
  double logprob;
  std::vector<TokenLogprob> top;
};

// The logits of one step, [logits_rows, vocab], wherever they lie.
class Logits {
 public:
  virtual ~Logits() = default;
  virtual int num_rows() const = 0;
  virtual int vocab_size() const = 0;
  virtual void copy_row(int row, std::span<float> out) const = 0;
  // By default on the host with model/sampling.h, row by row.
  virtual void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const;
  virtual void score(std::span<const ScoreRow> rows, std::span<TokenScore> out) const;
};

struct Limits {
  int num_blocks;  // KV blocks within the memory budget.
  int block_size;  // Positions a block.
  int max_tokens_per_step;
  int max_sequences_per_step;
};

struct MemoryUse {
  uint64_t weight_bytes;  // Mapped or copied.
  uint64_t kv_committed_bytes;
  uint64_t kv_budget_bytes;
  uint64_t scratch_bytes;
};

// layer -1 is the embedding. hidden: [tokens of the step, hidden].
using HiddenStateProbe = std::function<void(int layer, std::span<const float> hidden)>;

// How activations enter a product where the device multiplies bf16 only: as they are, at the price
// of several multiplications, or rounded as Transformers does in bfloat16.
enum class ActivationType { kF32, kBF16 };

// A device's own speeds, in bytes and operations a second.
struct DeviceRoofs {
  double read_bytes_per_second;  // The better of reading alone and copying.
  double copy_bytes_per_second;  // Read and written.
  double operations_per_second;  // Of the products' own instruction.
};

struct ExecutorOptions {
  int num_threads = 0;           // 0: the backend's choice.
  int num_threads_batch = 0;     // Of steps of several tokens; 0: as num_threads.
  std::string isa;               // A CPU instruction set by name; empty: the best there is.
  int context_length = 0;        // Tokens a sequence may have; 0: the model's own.
  uint64_t kv_memory_bytes = 0;  // 0: room for one sequence of context_length.
  KvType kv_type = KvType::kF32;
  ActivationType activation_type = ActivationType::kF32;  // Of the cuda backend.
  // Of the tensorrt backend: what is computed in (nothing: as the weights are stored), and layers
  // that are computed in float32 all the same, rising.
  std::optional<DType> precision;
  std::vector<int> fp32_layers;
  int max_tokens_per_step = 0;  // 0: the backend's choice.
  int max_sequences_per_step = 64;
  HiddenStateProbe hidden_state_probe;  // Empty: none.
};

// One model on one device, used by one thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual Limits limits() const = 0;
  virtual MemoryUse memory() const = 0;
  // Starts a step; the device may run behind the host.
  virtual void submit(const StepBatch& batch) = 0;
  // Ends the step that was submitted. Valid until the next submit.
  virtual const Logits& wait() = 0;
  virtual void copy_block(BlockId from, BlockId to) = 0;
  // One line of what it runs on and how: "avx512, 2 threads".
  virtual std::string description() const = 0;
  // The two parts of it that programs ask for. The instruction set: "avx512", "generic".
  virtual std::string_view isa() const { return "generic"; }
  // And how many threads compute a step of `num_tokens` tokens.
  virtual int num_threads(int /*num_tokens*/) const { return 1; }
  // Measured now, where the device has memory of its own; nothing where it is the machine's.
  virtual std::optional<DeviceRoofs> measure_roofs() { return std::nullopt; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Why it can't run on this machine, and what it is if it can ("2 threads, avx512").
  virtual std::optional<std::string> unavailable() const = 0;
  virtual std::string description() const = 0;
  // Why it can't run this model, or nothing.
  virtual std::optional<std::string> unsupported(const Manifest& manifest) const = 0;
  // The bundle must outlive the executor. Throws kExhausted, kUnsupported, kInvalidArgument.
  virtual std::unique_ptr<Executor> load(const Bundle& bundle,
                                         const ExecutorOptions& options) const = 0;
};

}  // namespace trtmc
