// The engine's thread allocates nothing for a token: counted by an operator new of our own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/file.h"
#include "engine/engine.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

thread_local int64_t allocations_of_thread = 0;

}  // namespace

// The forms that everything else comes from.
void* operator new(size_t size) {
  ++allocations_of_thread;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations_of_thread;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace trtmc {
namespace {

constexpr int kStreams = 32;
constexpr int kTokens = 1010;
constexpr int kFirstStep = 600, kLastStep = 1000;

// Every row says the next id; notes what the engine's thread has allocated by two of its steps.
class CountingExecutor final : public Executor, public Logits {
 public:
  explicit CountingExecutor(int vocab_size) : vocab_size_(vocab_size) {}

  Limits limits() const override {
    return {.num_blocks = 4096,
            .block_size = 32,
            .max_tokens_per_step = 2048,
            .max_sequences_per_step = kStreams};
  }
  MemoryUse memory() const override { return {}; }
  void submit(const StepBatch& batch) override {
    begun_.wait(false);
    num_steps_ += static_cast<int>(batch.sequence_starts.size()) == kStreams + 1 ? 1 : 0;
    if (num_steps_ == kFirstStep) before_ = allocations_of_thread;
    if (num_steps_ == kLastStep) after_ = allocations_of_thread;
  }
  const Logits& wait() override { return *this; }
  void copy_block(BlockId, BlockId) override {}
  std::string description() const override { return "counting"; }

  int num_rows() const override { return 1 << 20; }
  int vocab_size() const override { return vocab_size_; }
  void copy_row(int, std::span<float> out) const override { std::ranges::fill(out, 0.0f); }
  void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const override {
    for (size_t i = 0; i < rows.size(); ++i) {
      out[i].token = static_cast<TokenId>(rows[i].draw % 50 + 300);
    }
  }

  // Steps wait for it.
  void begin() {
    begun_ = true;
    begun_.notify_one();
  }

  int64_t allocations() const {
    EXPECT_GE(after_, 0) << "the window's last step never came";
    return after_ - before_;
  }

 private:
  int vocab_size_;
  std::atomic<bool> begun_ = false;
  int num_steps_ = 0;  // With every stream in them.
  int64_t before_ = -1, after_ = -1;
};

// Nobody reads meanwhile. In the window no queue and no list of tokens reaches a power of two,
// where it would grow.
int64_t allocations_in_window(const EngineOptions& options) {
  const auto tables =
      compile_tokenizer(read_file(TRTMC_SOURCE_DIR "/models/smollm3-tiny/tokenizer.json"));
  const Tokenizer tokenizer(tables);
  CountingExecutor executor(tokenizer.num_ids());
  EngineOptions unchecked = options;
  unchecked.checks_invariants = false;
  Engine engine(EngineModel{.executor = &executor,
                            .tokenizer = &tokenizer,
                            .vocab_size = tokenizer.num_ids(),
                            .context_length = 4096},
                unchecked);
  std::vector<TokenStream> streams;
  for (int i = 0; i < kStreams; ++i) {
    GenerationRequest request;
    request.prompt.assign(8, i);
    request.max_tokens = kTokens;
    request.stop = {"never said"};
    streams.push_back(engine.submit(std::move(request)));
  }
  executor.begin();
  for (const TokenStream& stream : streams) {
    while (stream.usage().completion_tokens < kTokens) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return executor.allocations();
}

// 12 800 tokens. The step's lists of blocks follow the longest sequence and double now and then.
TEST(EngineAllocations, ATokenCostsNone) { EXPECT_LE(allocations_in_window({}), 2); }

}  // namespace
}  // namespace trtmc
