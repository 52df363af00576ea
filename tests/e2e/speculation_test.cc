// Prompt lookup on the embedded model, a trained one: fewer steps where text repeats, and the very
// tokens and log-probabilities of an engine without it, wherever it guesses.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

class CountedExecutor final : public Executor {
 public:
  explicit CountedExecutor(Executor& executor) : executor_(executor) {}
  Limits limits() const override { return executor_.limits(); }
  MemoryUse memory() const override { return executor_.memory(); }
  void submit(const StepBatch& batch) override {
    ++num_steps;
    executor_.submit(batch);
  }
  const Logits& wait() override { return executor_.wait(); }
  void copy_block(BlockId from, BlockId to) override { executor_.copy_block(from, to); }
  std::string description() const override { return executor_.description(); }

  int num_steps = 0;

 private:
  Executor& executor_;
};

struct Result {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::string text;
  int num_steps = 0;
};

Result answer(const LoadedModel& model, const GenerationRequest& request, bool speculate) {
  EngineModel engine_model = model.engine_model();
  CountedExecutor executor(*engine_model.executor);
  engine_model.executor = &executor;
  Result result;
  {
    Engine engine(engine_model, {.prefix_cache = false, .speculate = speculate});
    TokenStream stream = engine.submit(request);
    while (const auto event = stream.next()) {
      result.text += event->text;
      if (event->token < 0) continue;
      result.tokens.push_back(event->token);
      result.logprobs.push_back(event->logprob);
    }
  }
  result.num_steps = executor.num_steps;
  return result;
}

TEST(EmbeddedModel, SpeculationChangesNoAnswer) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "tiny.trtmc";
  build_checkpoint_bundle(std::filesystem::path(TRTMC_SOURCE_DIR) / "models/smollm3-tiny", path);
  LoadOptions options;
  options.backend = "cpu";
  const LoadedModel model(path, options);
  const char* const prompts[] = {
      "one two three four five six, one two three four five six, one two three",
      "The cat sat on the mat. The cat sat on the mat. The dog sat on the"};
  for (const char* prompt : prompts) {
    for (const double temperature : {0.0, 0.7}) {
      GenerationRequest request;
      request.prompt = model.tokenizer().encode(prompt);
      request.max_tokens = 80;
      request.ignore_eos = true;
      request.logprobs = 0;
      request.sampling.temperature = temperature;
      request.sampling.seed = 3;
      // Seeded with penalties, greedy without: both have to take them or none from every draft.
      if (temperature > 0) request.sampling.repetition_penalty = 1.1;
      const Result without = answer(model, request, false);
      const Result with = answer(model, request, true);
      EXPECT_EQ(with.tokens, without.tokens);
      EXPECT_EQ(with.logprobs, without.logprobs);  // To the bit.
      EXPECT_EQ(with.text, without.text);
      EXPECT_EQ(without.num_steps, 80);
      if (temperature == 0) {
        EXPECT_LT(with.num_steps, without.num_steps);  // Some guess was right.
      }
    }
  }
}

}  // namespace
}  // namespace trtmc
