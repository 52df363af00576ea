// Times what the engine does between two steps of its executor: plan, arrays, sampling's rows,
// commit, text and events. The executor computes nothing and draws nothing, so that all that is
// left is the loop.
//
// engine_bench [STREAMS [TOKENS [TOKENIZER.JSON]]]; prints microseconds a step, median and 99 %.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "engine/engine.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

constexpr int kVocabulary = 10'000;
constexpr int kPromptTokens = 16;
constexpr TokenId kFirstLetter = 200;

// Rows of logits that are not there; token `kFirstLetter` and those after it in turn.
class NoLogits final : public Logits {
 public:
  int num_rows() const override { return 1 << 20; }
  int vocab_size() const override { return kVocabulary; }
  void copy_row(int, std::span<float> out) const override { std::ranges::fill(out, 0.0f); }
  void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const override {
    for (size_t i = 0; i < rows.size(); ++i) {
      out[i].token = kFirstLetter + static_cast<TokenId>(rows[i].draw % 1000);
      out[i].logprob = 0;
    }
  }
};

// Notes how long the engine takes from the end of a step to the start of the next.
class IdleExecutor final : public Executor {
 public:
  explicit IdleExecutor(int streams) : streams_(streams) { pauses_us_.reserve(1 << 20); }

  Limits limits() const override {
    return {.num_blocks = 1 << 14,
            .block_size = 32,
            .max_tokens_per_step = 2048,
            .max_sequences_per_step = streams_};
  }
  MemoryUse memory() const override { return {}; }
  void submit(const StepBatch& batch) override {
    begun_.wait(false);
    const auto now = std::chrono::steady_clock::now();
    // Steps in which every stream generates.
    const bool is_full = static_cast<int>(batch.tokens.size()) == streams_;
    if (is_full && was_full_) {
      pauses_us_.push_back(std::chrono::duration<double, std::micro>(now - end_).count());
    }
    was_full_ = is_full;
  }
  const Logits& wait() override {
    end_ = std::chrono::steady_clock::now();
    return logits_;
  }
  void copy_block(BlockId, BlockId) override {}
  std::string description() const override { return "idle"; }

  std::vector<double>& pauses_us() { return pauses_us_; }
  // Steps wait for it.
  void begin() {
    begun_ = true;
    begun_.notify_one();
  }

 private:
  int streams_;
  NoLogits logits_;
  std::chrono::steady_clock::time_point end_;
  std::atomic<bool> begun_ = false;
  bool was_full_ = false;
  std::vector<double> pauses_us_;
};

void run(int streams, int tokens, const Tokenizer* tokenizer) {
  IdleExecutor executor(streams);
  {
    Engine engine(EngineModel{.executor = &executor,
                              .tokenizer = tokenizer,
                              .vocab_size = kVocabulary,
                              .context_length = 1 << 16},
                  EngineOptions{.max_queued = streams, .max_tokens_per_step = 2048});
    std::vector<TokenStream> open;
    for (int i = 0; i < streams; ++i) {
      GenerationRequest request;
      for (int t = 0; t < kPromptTokens; ++t) request.prompt.push_back(i * 100 % 9'000 + t);
      request.max_tokens = tokens;
      open.push_back(engine.submit(std::move(request)));
    }
    executor.begin();
    for (TokenStream& stream : open) {
      while (stream.next()) {
      }
    }
  }
  std::vector<double>& pauses = executor.pauses_us();
  if (pauses.empty()) throw Error(ErrorCode::kInvalidArgument, "no step had every stream in it");
  std::ranges::sort(pauses);
  fmt::print("{} streams, {} steps: {:.1f} us a step, 99 % {:.1f} us\n", streams, pauses.size(),
             pauses[pauses.size() / 2], pauses[pauses.size() * 99 / 100]);
}

}  // namespace
}  // namespace trtmc

int main(int argc, char** argv) {
  try {
    const int streams = argc > 1 ? std::atoi(argv[1]) : 64;
    const int tokens = argc > 2 ? std::atoi(argv[2]) : 2000;
    std::vector<std::byte> tables;
    std::optional<trtmc::Tokenizer> tokenizer;
    if (argc > 3) {
      tables = trtmc::compile_tokenizer(trtmc::read_file(argv[3]));
      tokenizer.emplace(tables);
    }
    trtmc::run(streams, tokens, tokenizer ? &*tokenizer : nullptr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "engine_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
