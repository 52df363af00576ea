// The C interface, used from C11 (c_interface_is_c11.c) and from here.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/embedded_bundle.h"
#include "trtmc/trtmc_c.h"

extern "C" {
trtmc_status c_load(const char* path, trtmc_model** model, trtmc_error** error);
trtmc_status c_continuation(const trtmc_model* model, const char* prompt, int max_tokens, int most,
                            char* text, trtmc_answer* answer, trtmc_error** error);
}

namespace trtmc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CInterface : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(c_load(embedded_bundle().c_str(), &model_, nullptr), TRTMC_OK);
  }
  static void TearDownTestSuite() { trtmc_model_free(model_); }
  void TearDown() override { trtmc_error_free(error_); }

  static trtmc_model* model_;
  trtmc_error* error_ = nullptr;
};

trtmc_model* CInterface::model_ = nullptr;

// A string that the interface gave, freed.
std::string take(char* text) {
  std::string copy(text);
  trtmc_free(text);
  return copy;
}

TEST_F(CInterface, IsOfThisVersion) {
  EXPECT_STREQ(trtmc_version(), TRTMC_VERSION_STRING);
  EXPECT_EQ(trtmc_c_abi(), TRTMC_C_ABI);
  constexpr int kNumber = TRTMC_VERSION_NUMBER;
  EXPECT_EQ(fmt::format("{}.{}.{}", kNumber / 10000, kNumber / 100 % 100, kNumber % 100),
            TRTMC_VERSION_STRING);
}

// Transformers' own continuation, of tests/golden/smollm3-tiny/reference.json.
TEST_F(CInterface, ContinuesATextAsTransformers) {
  char text[4096];
  trtmc_answer answer = TRTMC_ANSWER_INIT;
  ASSERT_EQ(c_continuation(model_, "1. Apples\n2. Bananas\n3.", 0, 0, text, &answer, &error_),
            TRTMC_OK);
  EXPECT_STREQ(text, " Grapes\n4. Oranges\n5. Strawberries");
  EXPECT_STREQ(answer.finish_reason, "stop");
  EXPECT_EQ(answer.id_count, static_cast<size_t>(answer.completion_tokens));
}

TEST_F(CInterface, ACallbackEndsTheAnswer) {
  char text[4096];
  trtmc_answer answer = TRTMC_ANSWER_INIT;
  ASSERT_EQ(c_continuation(model_, "Gravity is the force that", 0, 2, text, &answer, &error_),
            TRTMC_OK);
  EXPECT_STREQ(answer.finish_reason, "cancelled");
  EXPECT_THAT(std::string(" keeps everything in the universe in balance."), StartsWith(text));
}

TEST_F(CInterface, FailsWithStatusMessageAndHint) {
  trtmc_model* none = nullptr;
  EXPECT_EQ(trtmc_model_load("no/such/file", nullptr, &none, &error_), TRTMC_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(trtmc_error_status(error_), TRTMC_NOT_FOUND);
  EXPECT_THAT(trtmc_error_message(error_), HasSubstr("no/such/file"));
  EXPECT_NE(trtmc_error_hint(error_), nullptr);
  EXPECT_EQ(trtmc_model_load("no/such/file", nullptr, &none, nullptr), TRTMC_NOT_FOUND);
}

TEST_F(CInterface, RefusesNullForWhatItNeeds) {
  EXPECT_EQ(trtmc_model_info(nullptr, nullptr, &error_), TRTMC_INVALID_ARGUMENT);
  EXPECT_STREQ(trtmc_error_message(error_), "model: NULL");
  int32_t* ids = nullptr;
  size_t count = 0;
  EXPECT_EQ(trtmc_tokenize(model_, nullptr, 1, 0, &ids, &count, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_tokenize(model_, nullptr, 0, 0, &ids, &count, nullptr), TRTMC_OK);
  EXPECT_EQ(count, 0u);
  trtmc_free(ids);
  EXPECT_EQ(trtmc_tokenize(model_, "a", 1, 0, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_render(model_, nullptr, nullptr, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_detokenize(model_, nullptr, 3, 0, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_score(model_, nullptr, 3, 0, nullptr, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_model_load(nullptr, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_model_chat(model_, nullptr, nullptr, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_model_complete_ids(nullptr, nullptr, 0, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_stream_next(nullptr, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_stream_read(nullptr, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_stream_answer(nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_chat_new(nullptr, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_chat_ask(nullptr, nullptr, nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_chat_give_results(nullptr, nullptr, 1, nullptr, nullptr, nullptr),
            TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_chat_history(nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(trtmc_chat_set_history(nullptr, nullptr, nullptr), TRTMC_INVALID_ARGUMENT);
}

TEST_F(CInterface, DoesNothingForNullThatIsFreed) {
  trtmc_free(nullptr);
  trtmc_generation_options_init(nullptr, 0);
  trtmc_model_free(nullptr);
  trtmc_stream_free(nullptr);
  trtmc_stream_cancel(nullptr);
  trtmc_chat_free(nullptr);
  trtmc_error_free(nullptr);
}

TEST_F(CInterface, ReadsTheOptionsOfOlderHeaders) {
  trtmc_generation_options options;
  TRTMC_GENERATION_OPTIONS_INIT(&options);
  options.temperature = 0;
  options.max_tokens = 1;
  options.logprobs = 3;
  options.size = offsetof(trtmc_generation_options, has_seed);  // Before `logprobs` was added.
  trtmc_stream* stream = nullptr;
  ASSERT_EQ(trtmc_model_complete(model_, "Hello", 5, &options, &stream, &error_), TRTMC_OK);
  trtmc_delta delta = TRTMC_DELTA_INIT;
  delta.size = offsetof(trtmc_delta, top);
  delta.top_count = 77;
  int more = 0;
  ASSERT_EQ(trtmc_stream_next(stream, &delta, &more, &error_), TRTMC_OK);
  EXPECT_EQ(more, 1);
  EXPECT_EQ(delta.logprob, 0);      // Was not asked for.
  EXPECT_EQ(delta.top_count, 77u);  // Beyond the caller's struct.
  trtmc_stream_free(stream);
}

TEST_F(CInterface, RefusesASizeThatNoHeaderSets) {
  for (const size_t size : {size_t{0}, size_t{7}, size_t{12}}) {
    trtmc_model_options options = TRTMC_MODEL_OPTIONS_INIT;
    options.size = size;
    trtmc_model* none = nullptr;
    trtmc_error_free(std::exchange(error_, nullptr));
    EXPECT_EQ(trtmc_model_load("x", &options, &none, &error_), TRTMC_INVALID_ARGUMENT);
    EXPECT_THAT(trtmc_error_message(error_), StartsWith("options: its size is "));
  }
  trtmc_stream* stream = nullptr;
  ASSERT_EQ(trtmc_model_complete(model_, "Hello", 5, nullptr, &stream, nullptr), TRTMC_OK);
  trtmc_delta delta = TRTMC_DELTA_INIT;
  delta.size = 0;
  int more = 77;
  EXPECT_EQ(trtmc_stream_next(stream, &delta, &more, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(more, 77);  // No other output is touched.
  trtmc_stream_free(stream);
}

TEST_F(CInterface, RefusesTheOptionsOfNewerHeaders) {
  trtmc_model_options options = TRTMC_MODEL_OPTIONS_INIT;
  options.size += 8;
  trtmc_model* none = nullptr;
  EXPECT_EQ(trtmc_model_load("x", &options, &none, &error_), TRTMC_INVALID_ARGUMENT);
  EXPECT_THAT(trtmc_error_hint(error_), HasSubstr("newer library"));
}

TEST_F(CInterface, RefusesAReservedFieldThatIsNotZero) {
  trtmc_model_options options = TRTMC_MODEL_OPTIONS_INIT;
  options.reserved = 1;
  trtmc_model* none = nullptr;
  EXPECT_EQ(trtmc_model_load("x", &options, &none, &error_), TRTMC_INVALID_ARGUMENT);
  EXPECT_STREQ(trtmc_error_message(error_), "options: reserved is 1, expected 0");
  trtmc_chat_options chat_options = TRTMC_CHAT_OPTIONS_INIT;
  chat_options.reserved = -1;
  trtmc_chat* chat = nullptr;
  EXPECT_EQ(trtmc_chat_new(model_, &chat_options, &chat, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(chat, nullptr);
}

// What the model of these options runs on, in words.
std::string device_of(const trtmc_model_options& options) {
  trtmc_model* model = nullptr;
  char* json = nullptr;
  EXPECT_EQ(trtmc_model_load(embedded_bundle().c_str(), &options, &model, nullptr), TRTMC_OK);
  EXPECT_EQ(trtmc_model_info(model, &json, nullptr), TRTMC_OK);
  trtmc_model_free(model);
  return take(json);
}

TEST_F(CInterface, ReadsOfOptionsWhatTheCallersHeaderHas) {
  trtmc_model_options options = TRTMC_MODEL_OPTIONS_INIT;
  options.threads = 1;
  options.threads_batch = 2;
  EXPECT_THAT(device_of(options), HasSubstr("1 thread (2 for several tokens)"));
  options.size = offsetof(trtmc_model_options, threads_batch);
  EXPECT_THAT(device_of(options), HasSubstr("1 thread,"));
}

TEST_F(CInterface, TokenizesBackAndForth) {
  const std::string text = "Hello<|im_end|>";
  int32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_EQ(trtmc_tokenize(model_, text.data(), text.size(), 0, &ids, &count, &error_), TRTMC_OK);
  ASSERT_EQ(count, 2u);
  char* back = nullptr;
  size_t length = 0;
  ASSERT_EQ(trtmc_detokenize(model_, ids, count, 0, &back, &length, &error_), TRTMC_OK);
  EXPECT_EQ(length, text.size());
  EXPECT_EQ(take(back), text);
  ASSERT_EQ(
      trtmc_detokenize(model_, ids, count, TRTMC_DETOKENIZE_SKIP_SPECIAL, &back, &length, &error_),
      TRTMC_OK);
  EXPECT_EQ(take(back), "Hello");
  trtmc_free(ids);
  ASSERT_EQ(trtmc_tokenize(model_, text.data(), text.size(), TRTMC_TOKENIZE_PLAIN_TEXT, &ids,
                           &count, &error_),
            TRTMC_OK);
  EXPECT_GT(count, 2u);
  trtmc_free(ids);
}

TEST_F(CInterface, ScoresIds) {
  int32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_EQ(trtmc_tokenize(model_, "Hello there", 11, 0, &ids, &count, &error_), TRTMC_OK);
  std::vector<double> logprobs(count);
  double sum = 0, perplexity = 0;
  ASSERT_EQ(trtmc_score(model_, ids, count, 0, logprobs.data(), &sum, &perplexity, &error_),
            TRTMC_OK);
  EXPECT_TRUE(std::isnan(logprobs[0]));
  EXPECT_LT(sum, 0);
  EXPECT_NEAR(perplexity, std::exp(-sum / static_cast<double>(count - 1)), 1e-9);
  EXPECT_EQ(trtmc_score(model_, ids, count, 0, nullptr, nullptr, nullptr, &error_), TRTMC_OK);
  trtmc_free(ids);
}

TEST_F(CInterface, RendersAndDescribes) {
  char* prompt = nullptr;
  size_t length = 0;
  ASSERT_EQ(trtmc_render(model_, R"([{"role": "user", "content": "Hi"}])", "2026-01-01", &prompt,
                         &length, &error_),
            TRTMC_OK);
  EXPECT_EQ(length, std::string(prompt).size());
  EXPECT_THAT(take(prompt), HasSubstr("Today Date: 01 January 2026"));
  char* json = nullptr;
  ASSERT_EQ(trtmc_model_info(model_, &json, &error_), TRTMC_OK);
  EXPECT_THAT(take(json), StartsWith(R"({"family":"smollm3","source":"smollm3-tiny")"));
}

TEST_F(CInterface, HoldsAConversation) {
  trtmc_chat_options options = TRTMC_CHAT_OPTIONS_INIT;
  options.think = 0;
  options.system = "/system_override Be brief.";  // The template's own is long.
  trtmc_chat* chat = nullptr;
  ASSERT_EQ(trtmc_chat_new(model_, &options, &chat, &error_), TRTMC_OK);
  trtmc_generation_options greedy;
  TRTMC_GENERATION_OPTIONS_INIT(&greedy);
  greedy.temperature = 0;
  greedy.max_tokens = 3;
  trtmc_stream* stream = nullptr;
  ASSERT_EQ(trtmc_chat_ask(chat, "Hello", &greedy, &stream, &error_), TRTMC_OK);
  ASSERT_EQ(trtmc_stream_read(stream, nullptr, nullptr, &error_), TRTMC_OK);
  trtmc_answer answer = TRTMC_ANSWER_INIT;
  ASSERT_EQ(trtmc_stream_answer(stream, &answer, &error_), TRTMC_OK);
  const std::string content(answer.content, answer.content_length);
  EXPECT_NE(content, "");
  trtmc_stream_free(stream);
  char* history = nullptr;
  ASSERT_EQ(trtmc_chat_history(chat, &history, &error_), TRTMC_OK);
  const std::string json = take(history);
  EXPECT_EQ(json, R"([{"role":"user","content":"Hello"},{"role":"assistant","content":")" +
                      content + R"("}])");
  EXPECT_EQ(trtmc_chat_set_history(chat, json.c_str(), &error_), TRTMC_OK);
  const char* const results[] = {"sunny"};
  EXPECT_EQ(trtmc_chat_give_results(chat, results, 1, nullptr, &stream, nullptr),
            TRTMC_INVALID_ARGUMENT);
  trtmc_chat_free(chat);
}

TEST_F(CInterface, LetsNoExceptionOfACallbackThrough) {
  trtmc_stream* stream = nullptr;
  ASSERT_EQ(trtmc_model_complete(model_, "Once", 4, nullptr, &stream, &error_), TRTMC_OK);
  const auto throws = [](const trtmc_delta*, void*) -> int { throw std::runtime_error("boo"); };
  EXPECT_EQ(trtmc_stream_read(stream, throws, nullptr, &error_), TRTMC_INTERNAL);
  EXPECT_THAT(trtmc_error_message(error_), HasSubstr("boo"));
  trtmc_stream_free(stream);
}

TEST_F(CInterface, RefusesABundleThatIsNone) {
  trtmc_model* none = nullptr;
  EXPECT_EQ(trtmc_model_load(TRTMC_SOURCE_DIR "/README.md", nullptr, &none, nullptr),
            TRTMC_CORRUPT);
  EXPECT_EQ(trtmc_model_load("/", nullptr, &none, nullptr), TRTMC_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CInterface, ThreadsShareAModel) {
  const auto continue_text = [&] {
    char text[4096];
    trtmc_answer answer = TRTMC_ANSWER_INIT;
    EXPECT_EQ(c_continuation(model_, "1. Apples\n2. Bananas\n3.", 6, 0, text, &answer, nullptr),
              TRTMC_OK);
    EXPECT_THAT(" Grapes\n4. Oranges\n5. Strawberries", StartsWith(text));
    EXPECT_EQ(answer.completion_tokens, 6);
  };
  std::thread other(continue_text);
  continue_text();
  other.join();
}

TEST_F(CInterface, AnotherThreadCancels) {
  trtmc_stream* stream = nullptr;
  ASSERT_EQ(trtmc_model_complete(model_, "Once", 4, nullptr, &stream, &error_), TRTMC_OK);
  std::thread([&] { trtmc_stream_cancel(stream); }).join();
  ASSERT_EQ(trtmc_stream_read(stream, nullptr, nullptr, &error_), TRTMC_OK);
  trtmc_stream_free(stream);
}

}  // namespace
}  // namespace trtmc
