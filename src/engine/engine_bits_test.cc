// What the engine does to save work never changes an answer: with the cpu backend, whose logits are
// the same bits whatever a step holds, prefix cache and speculation give the very tokens and
// log-probabilities of an engine without them.
#include <gtest/gtest.h>

#include <optional>

#include "backends/backend_loader.h"
#include "engine/engine.h"
#include "tests/support/random_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

DecoderSpec small_spec() {
  DecoderSpec spec{};
  spec.vocab_size = 96;
  spec.hidden_size = 48;
  spec.intermediate_size = 80;
  spec.num_heads = 3;
  spec.num_kv_heads = 1;
  spec.head_dim = 16;
  spec.context_length = 1024;
  spec.rms_norm_eps = 1e-6f;
  spec.tied_embeddings = true;
  spec.rope = {.theta = 10'000, .rotary_dim = 16, .scaling = {}};
  spec.layers = {{true, 0}, {false, 0}};
  return spec;
}

struct Answers {
  std::vector<std::vector<TokenId>> tokens;  // [choices]
  std::vector<std::vector<float>> logprobs;  // [choices]
  std::vector<double> prompt_logprobs;
  Usage usage;
};

class EngineBits : public testing::Test {
 protected:
  EngineBits() {
    write_random_bundle(folder_.path() / "x.trtmc", small_spec(), "f32", 7);
    bundle_.emplace(folder_.path() / "x.trtmc");
  }

  // A model of its own for each engine.
  std::unique_ptr<Executor> make_executor(uint64_t kv_memory_bytes = 0) const {
    ExecutorOptions options;
    options.num_threads = 1;
    options.kv_memory_bytes = kv_memory_bytes;
    return find_backend("cpu", bundle_->manifest()).load(*bundle_, options);
  }
  static EngineModel model_of(Executor& executor) {
    return {.executor = &executor,
            .tokenizer = nullptr,
            .vocab_size = small_spec().vocab_size,
            .context_length = small_spec().context_length};
  }

  static Answers read(TokenStream stream) {
    Answers answers;
    while (const auto event = stream.next()) {
      answers.tokens.resize(std::max<size_t>(answers.tokens.size(), event->choice + 1));
      answers.logprobs.resize(answers.tokens.size());
      if (event->token < 0) continue;
      answers.tokens[event->choice].push_back(event->token);
      answers.logprobs[event->choice].push_back(event->logprob);
    }
    for (const TokenScore& score : stream.prompt_scores().tokens) {
      answers.prompt_logprobs.push_back(score.logprob);
    }
    answers.usage = stream.usage();
    return answers;
  }

  Answers fresh(const GenerationRequest& request) const {
    const auto executor = make_executor();
    Engine engine(model_of(*executor), {.prefix_cache = false});
    return read(engine.submit(request));
  }

  TemporaryFolder folder_;
  std::optional<Bundle> bundle_;
};

GenerationRequest request_of(int prompt_size, double temperature, int n = 1) {
  GenerationRequest request;
  for (int i = 0; i < prompt_size; ++i) request.prompt.push_back((i * i + 3 * i) % 96);
  request.sampling.temperature = temperature;
  request.sampling.seed = 11;
  request.max_tokens = 60;
  request.n = n;
  request.logprobs = 0;
  return request;
}

void expect_same(const Answers& a, const Answers& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.logprobs, b.logprobs);  // To the bit.
  EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
}

TEST_F(EngineBits, DoNotChangeWithAPrefixThatIsFound) {
  const auto executor = make_executor();
  Engine engine(model_of(*executor), {});
  for (const double temperature : {0.0, 0.8}) {
    const GenerationRequest request = request_of(100, temperature);
    const Answers expected = fresh(request);
    expect_same(read(engine.submit(request)), expected);
    const Answers again = read(engine.submit(request));
    expect_same(again, expected);
    EXPECT_EQ(again.usage.cached_tokens, 96);  // Three blocks of 32.
  }
}

// As the next turn of a chat does.
TEST_F(EngineBits, DoNotChangeWhenAConversationGoesOn) {
  const auto executor = make_executor();
  Engine engine(model_of(*executor), {});
  GenerationRequest request = request_of(50, 0.7);
  for (int turn = 0; turn < 3; ++turn) {
    const Answers answers = read(engine.submit(request));
    expect_same(answers, fresh(request));
    // All of the last prompt and answer but for the last token, in whole blocks.
    const int known = static_cast<int>(request.prompt.size());
    EXPECT_EQ(answers.usage.cached_tokens, turn == 0 ? 0 : (known - 6) / 32 * 32);
    request.prompt.insert(request.prompt.end(), answers.tokens[0].begin(), answers.tokens[0].end());
    for (TokenId token : {3, 1, 4, 1, 5}) request.prompt.push_back(token);
  }
}

TEST_F(EngineBits, ScoredPromptsAreComputedWhereTheyAreScored) {
  const auto executor = make_executor();
  Engine engine(model_of(*executor), {});
  GenerationRequest request = request_of(100, 0);
  request.echo_logprobs = true;
  request.max_tokens = 3;
  const Answers first = read(engine.submit(request)), second = read(engine.submit(request));
  ASSERT_EQ(first.prompt_logprobs.size(), 99u);
  expect_same(first, second);
  EXPECT_EQ(second.usage.cached_tokens, 0);  // Their logits are wanted.
  request.echo_logprobs = false;
  EXPECT_EQ(read(engine.submit(request)).usage.cached_tokens, 96);
}

TEST_F(EngineBits, DoNotChangeWhenMemoryRunsOut) {
  const uint64_t block_bytes = 2 * 2 * 16 * 32 * 4;  // Two layers; keys and values of 16 floats.
  const uint64_t budget = 12 * block_bytes;
  const auto executor = make_executor(budget);
  ASSERT_EQ(executor->limits().num_blocks, 12);
  Engine engine(model_of(*executor), {});
  EXPECT_EQ(executor->memory().kv_committed_bytes, 0u);
  std::vector<GenerationRequest> requests;
  std::vector<TokenStream> streams;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(request_of(70 + 9 * i, 0.9));
    requests.back().prompt[static_cast<size_t>(11 * i)] = 1;
    streams.push_back(engine.submit(requests.back()));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    expect_same(read(std::move(streams[i])), fresh(requests[i]));
  }
  EXPECT_EQ(executor->memory().kv_budget_bytes, budget);
  EXPECT_EQ(executor->memory().kv_committed_bytes, budget);
}

TEST_F(EngineBits, KvMemoryIsCommittedAsItIsUsed) {
  const auto executor = make_executor();
  const uint64_t block_bytes =
      executor->memory().kv_budget_bytes / static_cast<uint64_t>(executor->limits().num_blocks);
  Engine engine(model_of(*executor), {.prefix_cache = false});
  for (int i = 0; i < 3; ++i) {  // 159 tokens are computed, in the same five blocks each time.
    read(engine.submit(request_of(100, 0)));
    EXPECT_EQ(executor->memory().kv_committed_bytes, 5 * block_bytes);
  }
}

TEST_F(EngineBits, DoNotChangeWithSpeculation) {
  for (const double temperature : {0.0, 0.3, 1.0}) {
    for (const double penalty : {0.0, 0.4}) {
      const auto executor = make_executor();
      Engine engine(model_of(*executor), {.speculate = true});
      GenerationRequest request = request_of(90, temperature, 2);
      // What has been said five times over is said again.
      for (size_t i = 0; i < request.prompt.size(); ++i) request.prompt[i] = request.prompt[i % 18];
      request.sampling.frequency_penalty = penalty;
      request.sampling.presence_penalty = penalty;
      request.sampling.repetition_penalty = 1 + penalty / 4;
      request.logprobs = 2;
      request.max_tokens = 150;
      expect_same(read(engine.submit(request)), fresh(request));
    }
  }
}

}  // namespace
}  // namespace trtmc
