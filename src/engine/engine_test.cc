#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/file.h"
#include "tests/support/engine_answers.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(EngineTest, AnswersWithTheGreedyTokens) {
  Engine engine(model_of(executor_), {});
  const auto prompt = some_prompt(70, 1);  // In three chunks.
  auto stream = engine.submit(greedy_request(prompt, 25));
  const Answer answer = read_all(stream).at(0);
  EXPECT_EQ(answer.tokens, greedy_answer(prompt, 25));
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(stream.usage().prompt_tokens, 70);
  EXPECT_EQ(stream.usage().completion_tokens, 25);
}

TEST_F(EngineTest, RunsManyRequestsTogetherAndEachAsIfAlone) {
  Engine engine(model_of(executor_), {});
  std::vector<TokenStream> streams;
  for (int i = 0; i < 20; ++i) {
    streams.push_back(engine.submit(greedy_request(some_prompt(3 + i * 2, i), 5 + i)));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(read_all(streams[static_cast<size_t>(i)]).at(0).tokens,
              greedy_answer(some_prompt(3 + i * 2, i), 5 + i));
  }
  EXPECT_GT(executor_.widest_step(), 1);
}

TEST_F(EngineTest, AnswersTheSameWhenBlocksRunOut) {
  FakeExecutor small(
      kVocabulary,
      {.num_blocks = 12, .block_size = 2, .max_tokens_per_step = 8, .max_sequences_per_step = 4});
  Engine engine(model_of(small), {});
  std::vector<TokenStream> streams;
  for (int i = 0; i < 6; ++i)
    streams.push_back(engine.submit(greedy_request(some_prompt(4, i), 15)));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(read_all(streams[static_cast<size_t>(i)]).at(0).tokens,
              greedy_answer(some_prompt(4, i), 15));
  }
  // More than 6 * 18 computed tokens: some were computed again.
  EXPECT_GT(small.num_tokens(), 6 * 18);
}

TEST_F(EngineTest, ZeroMaxTokensGoesOnToTheContextsEnd) {
  EngineModel model = model_of(executor_);
  model.context_length = 40;
  Engine engine(model, {});
  EXPECT_EQ(read_one(engine.submit(greedy_request(some_prompt(30, 1), 0))).tokens.size(), 10u);
  const Answer cut = read_one(engine.submit(greedy_request(some_prompt(30, 1), 99)));
  EXPECT_EQ(cut.tokens.size(), 10u);
  EXPECT_EQ(cut.finish, FinishReason::kLength);
}

TEST_F(EngineTest, AStopIdEndsTheAnswerAndIsNotShown) {
  FakeExecutor executor(kVocabulary, kLimits, scripted(2, {10, 11, 12, 13}, kVocabulary));
  Engine engine(model_of(executor), {});
  GenerationRequest request = greedy_request({1, 2}, 4);
  request.stop_ids = {40, 12};
  auto stream = engine.submit(request);
  const Answer answer = read_all(stream).at(0);
  EXPECT_THAT(answer.tokens, ElementsAre(10, 11));
  EXPECT_EQ(answer.finish, FinishReason::kStop);
  EXPECT_EQ(answer.events.back().token, -1);
  EXPECT_EQ(answer.events.back().stop_token, 12);
  EXPECT_EQ(stream.usage().completion_tokens, 2);

  request.ignore_eos = true;
  EXPECT_THAT(read_one(engine.submit(request)).tokens, ElementsAre(10, 11, 12, 13));
}

TEST_F(EngineTest, DrawsBySeedWhateverElseRuns) {
  Engine engine(model_of(executor_), {});
  GenerationRequest request;
  request.prompt = some_prompt(9, 2);
  request.max_tokens = 20;
  request.sampling.seed = 5;
  const auto alone = read_one(engine.submit(request)).tokens;
  std::vector<TokenStream> others;
  for (int i = 0; i < 5; ++i)
    others.push_back(engine.submit(greedy_request(some_prompt(20, i), 30)));
  EXPECT_EQ(read_one(engine.submit(request)).tokens, alone);
  request.sampling.seed = 6;
  EXPECT_NE(read_one(engine.submit(request)).tokens, alone);

  // By the definition: the i-th token is drawn with the i-th number of the seed.
  std::vector<TokenId> ids = request.prompt;
  request.sampling.seed = 5;
  for (uint64_t draw = 0; draw < 20; ++draw) {
    const SampleRow row{.row = 0,
                        .params = &request.sampling,
                        .draw = draw,
                        .counts = {},
                        .allowed = {},
                        .top_logprobs = -1};
    ids.push_back(sample_token(hashed_logits(ids, kVocabulary), row).token);
  }
  EXPECT_EQ(std::vector<TokenId>(ids.begin() + 9, ids.end()), alone);
}

TEST_F(EngineTest, ChoicesDifferAndTheFirstIsTheAnswerOfOne) {
  Engine engine(model_of(executor_), {});
  GenerationRequest request;
  request.prompt = some_prompt(23, 3);
  request.max_tokens = 12;
  request.sampling.seed = 77;
  FakeExecutor other(kVocabulary, kLimits);
  Engine engine_for_one(model_of(other), {});
  const auto one = read_one(engine_for_one.submit(request)).tokens;
  request.n = 4;
  auto stream = engine.submit(request);
  const auto answers = read_all(stream);
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0].tokens, one);
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(answers[i].tokens, answers[i - 1].tokens);
  EXPECT_EQ(stream.usage().completion_tokens, 48);
  // The prompt is computed once; each follower computes its last token again.
  EXPECT_EQ(executor_.num_tokens(), 23 + 3 + 4 * 11);
  EXPECT_EQ(executor_.num_copies(), 3);
}

TEST_F(EngineTest, GreedyChoicesAreAllTheSame) {
  Engine engine(model_of(executor_), {});
  GenerationRequest request = greedy_request(some_prompt(17, 3), 9);
  request.n = 12;  // More than a step holds.
  auto stream = engine.submit(request);
  for (const Answer& answer : read_all(stream)) {
    EXPECT_EQ(answer.tokens, greedy_answer(some_prompt(17, 3), 9));
  }
}

TEST_F(EngineTest, ReportsLogprobsOfTheModelsOwnDistribution) {
  Engine engine(model_of(executor_), {});
  GenerationRequest request = greedy_request({3, 1, 4}, 2);
  request.logprobs = 3;
  request.sampling.logit_bias = {{7, 100}};
  const Answer answer = read_one(engine.submit(request));
  ASSERT_THAT(answer.tokens, ElementsAre(7, 7));
  const auto logits = hashed_logits(std::vector<TokenId>{3, 1, 4, 7}, kVocabulary);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit);
  EXPECT_NEAR(answer.events[1].logprob, logits[7] - std::log(total), 1e-5);
  ASSERT_EQ(answer.events[1].top.size(), 3u);
  const float most = *std::ranges::max_element(logits);
  EXPECT_NEAR(answer.events[1].top[0].logprob, most - std::log(total), 1e-5);
}

TEST_F(EngineTest, PenaltiesCountWhatWasGenerated) {
  // 1.0 and 0.9 less a quarter for each time seen: they take turns.
  FakeExecutor executor(kVocabulary, kLimits, [](std::span<const TokenId>) {
    std::vector<float> logits(kVocabulary, -9);
    logits[20] = 1, logits[30] = 0.9f;
    return logits;
  });
  Engine engine(model_of(executor), {});
  GenerationRequest request = greedy_request({20, 20, 20}, 5);
  request.sampling.frequency_penalty = 0.25;
  EXPECT_THAT(read_one(engine.submit(request)).tokens, ElementsAre(20, 30, 20, 30, 20));
  request.sampling.frequency_penalty = 0;
  request.sampling.repetition_penalty = 2;  // The prompt counts here.
  EXPECT_THAT(read_one(engine.submit(request)).tokens, ElementsAre(30, 20, 20, 20, 20));
}

TEST_F(EngineTest, ScoresThePromptBeforeTheFirstEvent) {
  Engine engine(model_of(executor_), {});
  const auto prompt = some_prompt(75, 4);
  GenerationRequest request = greedy_request(prompt, 2);
  request.echo_logprobs = true;
  request.logprobs = 1;
  request.n = 2;
  auto stream = engine.submit(request);
  ASSERT_TRUE(stream.next());
  const auto& scores = stream.prompt_scores().tokens;
  ASSERT_EQ(scores.size(), 74u);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto logits = hashed_logits(std::span(prompt).first(i + 1), kVocabulary);
    EXPECT_EQ(scores[i].logprob, log_probability(logits, prompt[i + 1]));
    ASSERT_EQ(scores[i].top.size(), 1u);
    EXPECT_EQ(logits[static_cast<size_t>(scores[i].top[0].token)],
              *std::ranges::max_element(logits));
  }
}

TEST_F(EngineTest, APromptOfOneTokenHasNoScores) {
  Engine engine(model_of(executor_), {});
  GenerationRequest request = greedy_request({5}, 2);
  request.echo_logprobs = true;
  request.n = 2;
  auto stream = engine.submit(request);
  for (const Answer& answer : read_all(stream)) EXPECT_EQ(answer.tokens, greedy_answer({5}, 2));
  EXPECT_THAT(stream.prompt_scores().tokens, IsEmpty());
}

TEST_F(EngineTest, ServesManyThreads) {
  Engine engine(model_of(executor_), {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&engine, t] {
      for (int i = 0; i < 20; ++i) {
        const auto prompt = some_prompt(1 + i, t);
        auto stream = engine.submit(greedy_request(prompt, 6));
        if (i % 5 == 4) {
          stream.next();
          continue;  // Goes away in the middle.
        }
        EXPECT_EQ(read_all(stream).at(0).tokens, greedy_answer(prompt, 6));
        EXPECT_EQ(stream.usage().completion_tokens, 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The embedded model's tokenizer.
class EngineText : public EngineTest {
 protected:
  EngineText()
      : tables_(
            compile_tokenizer(read_file(TRTMC_SOURCE_DIR "/models/smollm3-tiny/tokenizer.json"))),
        tokenizer_(tables_) {}

  // The answer of a model that writes `text`.
  Answer answer(const std::string& text,
                const std::function<void(GenerationRequest&)>& change = {}) {
    const auto script = tokenizer_.encode(text);
    FakeExecutor executor(tokenizer_.num_ids(), kLimits, scripted(1, script, tokenizer_.num_ids()));
    EngineModel model = model_of(executor, tokenizer_.num_ids());
    model.tokenizer = &tokenizer_;
    Engine engine(model, {});
    GenerationRequest request = greedy_request({1}, static_cast<int>(script.size()));
    if (change) change(request);
    return read_one(engine.submit(request));
  }

  std::vector<std::byte> tables_;
  Tokenizer tokenizer_;
};

TEST_F(EngineText, StreamsWholeCodePoints) {
  const std::string text = "Hi \xF0\x9F\x98\x80 \xE6\x97\xA5\xE6\x9C\xAC!";
  ASSERT_GT(tokenizer_.encode("\xF0\x9F\x98\x80").size(), 1u);
  const Answer result = answer(text);
  EXPECT_EQ(result.text, text);
  for (const TokenEvent& event : result.events) {
    EXPECT_THAT(event.text, testing::Not(HasSubstr("\xEF\xBF\xBD")));
  }
}

TEST_F(EngineText, ACodePointThatIsCutByTheLengthIsReplaced) {
  const auto ids = tokenizer_.encode("a\xF0\x9F\x98\x80");
  ASSERT_GT(ids.size(), 2u);
  const Answer result = answer("a\xF0\x9F\x98\x80", [&](GenerationRequest& request) {
    request.max_tokens = static_cast<int>(ids.size()) - 1;
  });
  EXPECT_EQ(result.text, "a\xEF\xBF\xBD");
}

TEST_F(EngineText, NothingOfAStopStringIsShown) {
  const Answer result = answer("one two three", [](GenerationRequest& request) {
    request.stop = {"o th", "never"};
  });
  EXPECT_EQ(result.text, "one tw");
  EXPECT_EQ(result.finish, FinishReason::kStop);
  EXPECT_LT(result.tokens.size(), tokenizer_.encode("one two three").size() + 1);
}

TEST_F(EngineText, TextHeldBackForAStopStringComesAtTheEnd) {
  const Answer result =
      answer("one two", [](GenerationRequest& request) { request.stop = {"two three"}; });
  EXPECT_EQ(result.text, "one two");
  EXPECT_EQ(result.finish, FinishReason::kLength);
}

TEST_F(EngineText, SpecialTokensShowOnlyWhenAskedFor) {
  const std::string text = "a<|im_end|>b";
  EXPECT_EQ(answer(text).text, "ab");
  EXPECT_EQ(answer(text, [](GenerationRequest& request) { request.keep_special = true; }).text,
            text);
}

}  // namespace
}  // namespace trtmc
