// The C++ interface on the embedded model, against what Transformers recorded of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/embedded_bundle.h"
#include "tests/support/error_of.h"
#include "tests/support/golden_bundle.h"
#include "trtmc/trtmc.h"

namespace trtmc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kGoldens =
    std::filesystem::path(TRTMC_SOURCE_DIR) / "tests/golden/smollm3-tiny";
const std::filesystem::path kUnpackedGoldens =
    std::filesystem::path(TRTMC_BINARY_DIR) / "testdata/tests/golden/smollm3-tiny";
constexpr char kDate[] = "2026-01-01";  // Of the goldens.

const Model& model() {
  static const Model instance(embedded_bundle(), {.threads = 1});
  return instance;
}

std::vector<TokenId> ids_of(const JsonCursor& cursor) {
  std::vector<TokenId> ids;
  for (const JsonCursor& id : cursor.elements()) {
    ids.push_back(static_cast<TokenId>(id.integer()));
  }
  return ids;
}

std::vector<TokenId> ids_of(const Answer& answer) {
  std::vector<TokenId> ids;
  for (const Token& token : answer.tokens) ids.push_back(token.id);
  return ids;
}

// One prompt of reference.json.
struct Golden {
  std::string kind;       // "raw" or "chat"
  std::string prompt;     // The bytes.
  std::string user{};     // Of a chat.
  std::string request{};  // Of a chat: what render() takes.
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> greedy_ids;  // Up to our first stop id.
  bool stopped = false;

  GenerationOptions options() const {
    return {.temperature = 0,
            .max_tokens = static_cast<int>(greedy_ids.size()) + (stopped ? 1 : 0)};
  }
};

std::string request_of(const JsonCursor& prompt) {
  Json user, kwargs, request;
  user.set("role", "user");
  user.set("content", prompt.at("user").string());
  kwargs.set("enable_thinking", prompt.at("think").boolean());
  request.set("messages", Json::Array{user});
  request.set("chat_template_kwargs", kwargs);
  if (const auto tools = prompt.find_set("tools")) request.set("tools", tools->json());
  return request.dump();
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> instance = [] {
    const Json json = Json::parse(read_file(kGoldens / "reference.json"));
    const std::vector<TokenId> stop_ids = model().info().stop_ids;
    std::vector<Golden> result;
    for (const JsonCursor& prompt : JsonCursor(json).at("prompts").elements()) {
      Golden golden{.kind = prompt.at("kind").string(),
                    .prompt = prompt.at("text").string(),
                    .prompt_ids = ids_of(prompt.at("input_ids")),
                    .greedy_ids = ids_of(prompt.at("float32").at("greedy_ids"))};
      if (golden.kind == "chat") {
        golden.user = prompt.at("user").string();
        golden.request = request_of(prompt);
      }
      const auto stop = std::ranges::find_first_of(golden.greedy_ids, stop_ids);
      golden.stopped = stop != golden.greedy_ids.end();
      golden.greedy_ids.erase(stop, golden.greedy_ids.end());
      result.push_back(std::move(golden));
    }
    return result;
  }();
  return instance;
}

const Golden& chat_golden(std::string_view user) {
  const auto found =
      std::ranges::find_if(goldens(), [&](const Golden& golden) { return golden.user == user; });
  if (found == goldens().end()) throw std::runtime_error("no such golden");
  return *found;
}

constexpr char kWeatherTool[] =
    R"([{"name": "get_weather", "description": "Get the weather in a city", "parameters": )"
    R"({"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, )"
    R"("required": ["city"]}}])";

TEST(Library, RendersAndTokenizesAsTransformers) {
  for (const Golden& golden : goldens()) {
    if (golden.kind == "chat") {
      EXPECT_EQ(model().render(golden.request, kDate), golden.prompt);
    }
    EXPECT_EQ(model().tokenize(golden.prompt), golden.prompt_ids);
    EXPECT_EQ(model().detokenize(golden.prompt_ids), golden.prompt);
  }
}

TEST(Library, ContinuesATextAsTransformers) {
  for (const Golden& golden : goldens()) {
    if (golden.kind != "raw") continue;
    const Answer answer = model().complete(golden.prompt, golden.options()).read();
    EXPECT_EQ(ids_of(answer), golden.greedy_ids) << golden.prompt;
    EXPECT_EQ(finish_reason(answer), golden.stopped ? "stop" : "length");
    EXPECT_EQ(answer.content, model().detokenize(golden.greedy_ids));
    EXPECT_EQ(answer.usage.prompt_tokens, static_cast<int>(golden.prompt_ids.size()));
    EXPECT_EQ(answer.usage.completion_tokens, static_cast<int>(golden.greedy_ids.size()));
  }
}

TEST(Library, AnswersAConversationAsTransformers) {
  const Golden& golden = chat_golden("What is the capital of France?");
  const Answer answer = model().chat(golden.request, golden.options(), kDate).read();
  EXPECT_EQ(ids_of(answer), golden.greedy_ids);
  EXPECT_EQ(answer.content, "The capital of France is Paris.");
  EXPECT_EQ(answer.reasoning, "");
  EXPECT_EQ(answer.finish, FinishReason::kStop);
}

TEST(Library, TellsReasoningFromContent) {
  const Golden& golden = chat_golden("What is 7 + 5?");
  const Answer answer = model().chat(golden.request, golden.options(), kDate).read();
  EXPECT_EQ(answer.reasoning, "7 plus 5 is 12.");
  EXPECT_EQ(answer.content, "7 + 5 = 12.");
}

TEST(Library, GivesToolCalls) {
  const Golden& golden = chat_golden("What is the weather in Paris?");
  const Answer answer = model().chat(golden.request, golden.options(), kDate).read();
  EXPECT_THAT(answer.tool_calls, ElementsAre(ToolCall{"get_weather", R"({"city": "Paris"})"}));
  EXPECT_EQ(answer.content, "");
  EXPECT_EQ(finish_reason(answer), "tool_calls");
}

TEST(Library, TheDeltasAddUpToTheAnswer) {
  const Golden& golden = chat_golden("What is 7 + 5?");
  Stream stream = model().chat(golden.request, golden.options(), kDate);
  std::string content, reasoning;
  std::vector<TokenId> ids;
  size_t pieces = 0;
  for (const Delta& delta : stream) {
    pieces += delta.has_text() ? 1 : 0;
    content += delta.content;
    reasoning += delta.reasoning;
    if (delta.token) ids.push_back(delta.token->id);
  }
  EXPECT_GT(pieces, 5u);
  EXPECT_EQ(content, stream.answer().content);
  EXPECT_EQ(reasoning, stream.answer().reasoning);
  EXPECT_EQ(ids, golden.greedy_ids);
  EXPECT_FALSE(stream.next());
}

TEST(Library, ReportsLogprobsOnlyIfAskedFor) {
  GenerationOptions options{.temperature = 0, .max_tokens = 3, .logprobs = 2};
  for (const Token& token : model().complete("Hello", options).read().tokens) {
    ASSERT_EQ(token.top.size(), 2u);
    EXPECT_EQ(token.top[0].token, token.id);  // Greedy takes the most likely one.
    EXPECT_FLOAT_EQ(token.top[0].logprob, token.logprob);
    EXPECT_GE(token.top[0].logprob, token.top[1].logprob);
  }
  options.logprobs.reset();
  EXPECT_TRUE(model().complete("Hello", options).read().tokens.at(0).top.empty());
}

TEST(Library, EqualSeedsGiveEqualAnswers) {
  const GenerationOptions options{.temperature = 1.5, .seed = 7, .max_tokens = 12};
  const Answer first = model().complete("Once", options).read();
  EXPECT_EQ(ids_of(model().complete("Once", options).read()), ids_of(first));
}

TEST(Library, StopsBeforeAStopString) {
  const Golden& golden = chat_golden("What is the capital of France?");
  GenerationOptions options = golden.options();
  options.stop = {"France"};
  const Answer answer = model().chat(golden.request, options, kDate).read();
  EXPECT_EQ(answer.content, "The capital of ");
  EXPECT_EQ(answer.finish, FinishReason::kStop);
}

TEST(Library, AnotherThreadCancelsAnAnswer) {
  Stream stream = model().complete("Once upon a time", {.temperature = 1, .seed = 1});
  ASSERT_TRUE(stream.next());
  std::thread([&] { stream.cancel(); }).join();
  const Answer answer = stream.read();
  EXPECT_EQ(finish_reason(answer), "cancelled");
  stream.cancel();  // Of an answer that is over: nothing.
}

TEST(Library, AStreamOutlivesItsModelAndMayDieEarly) {
  auto other = std::make_unique<Model>(embedded_bundle(), ModelOptions{.threads = 1});
  Stream kept = other->complete("The capital of France is", {.temperature = 0, .max_tokens = 8});
  { const Stream dropped = other->complete("Once", {.temperature = 0}); }
  other.reset();
  EXPECT_EQ(kept.read().content, " Paris.");
}

TEST(Library, ThreadsShareAModel) {
  std::vector<std::thread> threads;
  std::vector<Answer> answers(4);
  for (size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] {
      answers[i] = model().complete(goldens()[i].prompt_ids, goldens()[i].options()).read();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(ids_of(answers[i]), goldens()[i].greedy_ids) << goldens()[i].prompt;
  }
}

TEST(Library, ScoresAsTransformers) {
  const Json json = read_goldens(kUnpackedGoldens / "logits.json");
  const JsonCursor golden = JsonCursor(json).at("perplexity");
  std::vector<TokenId> ids = ids_of(golden.at("ids"));
  ids.resize(static_cast<size_t>(golden.at("window").integer()));
  const double expected = -golden.at("nll").elements()[0].number();
  const Score score = model().score(ids);
  EXPECT_NEAR(score.logprob_sum, expected, 1e-4 * std::abs(expected));
  EXPECT_NEAR(std::log(score.perplexity), -expected / static_cast<double>(ids.size() - 1), 1e-4);
  EXPECT_EQ(score.ids, ids);
}

TEST(Library, ScoresWindowsThatKnowNothingOfEachOther) {
  const std::vector<TokenId> ids = model().tokenize("The capital of France is Paris.");
  const size_t half = ids.size() / 2;
  const auto sum_of = [](auto first, auto last) {
    return model().score(std::vector<TokenId>(first, last)).logprob_sum;
  };
  const Score score = model().score(ids, static_cast<int>(half));
  double sum = 0;
  for (size_t start = 0; start < ids.size(); start += half) {
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(start);
    sum += sum_of(first, first + static_cast<std::ptrdiff_t>(std::min(half, ids.size() - start)));
    EXPECT_TRUE(std::isnan(score.token_logprobs[start]));
  }
  EXPECT_DOUBLE_EQ(score.logprob_sum, sum);
}

TEST(Library, ATokenAloneHasNoPerplexity) {
  const Score score = model().score("Hello");
  EXPECT_EQ(score.logprob_sum, 0);
  EXPECT_TRUE(std::isnan(score.perplexity));
}

TEST(Library, SaysWhatItWasGiven) {
  const ModelInfo info = model().info();
  EXPECT_EQ(info.family, "smollm3");
  EXPECT_EQ(info.source, "smollm3-tiny");
  EXPECT_TRUE(info.has_tokenizer && info.has_chat_template && info.has_reasoning && info.has_tools);
  EXPECT_THAT(info.device, HasSubstr("1 thread"));
  EXPECT_THAT(Model(embedded_bundle(), {.threads = 1, .threads_batch = 2}).info().device,
              HasSubstr("1 thread (2 for several tokens)"));
  EXPECT_EQ(Model(embedded_bundle(), {.threads = 1, .context_length = 64}).info().context_length,
            64);
  EXPECT_EQ(version(), TRTMC_VERSION_STRING);
}

TEST(Library, RefusesWithACodeAndAMessage) {
  const auto refusal = [](auto&& body) {
    const Error error = error_of(body);
    return std::pair(error.code(), std::string(error.what()));
  };
  using ::testing::Pair;
  EXPECT_THAT(refusal([] { Model("no/such/file.trtmc"); }),
              Pair(ErrorCode::kNotFound, HasSubstr("no/such/file.trtmc")));
  EXPECT_THAT(refusal([] { Model(embedded_bundle(), {.backend = "abacus"}); }),
              Pair(testing::_, HasSubstr("abacus")));
  EXPECT_THAT(refusal([] { Model(embedded_bundle(), {.threads = -1}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("threads: -1")));
  EXPECT_THAT(refusal([] { Model(embedded_bundle(), {.threads_batch = -1}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("threads_batch: -1")));
  EXPECT_THAT(refusal([] { Model(embedded_bundle(), {.kv_type = "f8"}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("kv_type: \"f8\"")));
  EXPECT_THAT(refusal([] { model().complete("", {}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("prompt: no tokens")));
  EXPECT_THAT(refusal([] { model().complete("Hi", {.temperature = -1}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("temperature")));
  EXPECT_THAT(refusal([] { model().chat("[{"); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("conversation: ")));
  EXPECT_THAT(refusal([] { model().render("[]", "tomorrow"); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("tomorrow")));
  EXPECT_THAT(refusal([] { model().score(""); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("nothing to score")));
  EXPECT_THAT(refusal([] { model().detokenize({-1}); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(refusal([] { model().tokenize("\xff"); }),
              Pair(ErrorCode::kInvalidArgument, HasSubstr("UTF-8")));
}

TEST(Library, SendsMessagesWhereItIsTold) {
  std::vector<std::string> lines;
  set_log(LogLevel::kDebug, [&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  model().complete("Hi", {.temperature = 0, .max_tokens = 1}).read();
  set_log(LogLevel::kInfo);
  EXPECT_THAT(lines, Contains(HasSubstr("temperature 0 (request)")));
}

TEST(Conversation, AsksAndRemembers) {
  Chat chat(model(), {.think = false, .date = kDate});
  const Golden& golden = chat_golden("What is the capital of France?");
  EXPECT_EQ(chat.ask(golden.user, golden.options()).read().content,
            "The capital of France is Paris.");
  EXPECT_EQ(chat.history(), R"([{"role":"user","content":"What is the capital of France?"},)"
                            R"({"role":"assistant","content":"The capital of France is Paris."}])");
  Chat other(model(), {.think = false, .date = kDate});
  other.set_history(chat.history());
  const GenerationOptions options{.temperature = 0, .max_tokens = 8};
  EXPECT_EQ(ids_of(other.ask("And of Spain?", options).read()),
            ids_of(chat.ask("And of Spain?", options).read()));
}

TEST(Conversation, KeepsReasoningOutOfItsHistory) {
  Chat chat(model(), {.think = true, .date = kDate});
  const Golden& golden = chat_golden("What is 7 + 5?");
  EXPECT_EQ(chat.ask(golden.user, golden.options()).read().reasoning, "7 plus 5 is 12.");
  EXPECT_THAT(chat.history(), HasSubstr(R"("content":"7 + 5 = 12."})"));
}

TEST(Conversation, TakesTheResultsOfTools) {
  Chat chat(model(), {.think = false, .date = kDate, .tools = kWeatherTool});
  const Golden& golden = chat_golden("What is the weather in Paris?");
  EXPECT_EQ(error_of([&] { chat.give_results({"sunny"}); }).code(), ErrorCode::kInvalidArgument);
  const Answer answer = chat.ask(golden.user, golden.options()).read();
  ASSERT_EQ(ids_of(answer), golden.greedy_ids);
  ASSERT_EQ(answer.tool_calls.size(), 1u);
  EXPECT_EQ(error_of([&] { chat.give_results({"a", "b"}); }).code(), ErrorCode::kInvalidArgument);
  chat.give_results({R"({"sky": "sunny"})"}, {.temperature = 0, .max_tokens = 4}).read();
  const Json history = Json::parse(chat.history());
  ASSERT_GE(history.array()->size(), 3u);
  // SmolLM3's template knows no field for calls, so they stand as the model wrote them.
  EXPECT_EQ(*history.array()->at(1).find("content")->string(),
            "<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}\n"
            "</tool_call>");
  EXPECT_EQ(*history.array()->at(2).find("role")->string(), "tool");
}

TEST(Conversation, IsAskedOneThingAtATime) {
  Chat chat(model(), {.think = false, .date = kDate});
  {
    const Stream stream = chat.ask("Tell me a story about a dog.", {.temperature = 0});
    EXPECT_THAT(error_of([&] { chat.ask("And a cat."); }).what(), HasSubstr("is not over"));
    EXPECT_EQ(error_of([&] { chat.set_history("[]"); }).code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(chat.history(), "[]");  // Nothing was read of the answer.
  EXPECT_NO_THROW(chat.ask("Hi", {.temperature = 0, .max_tokens = 1}));
}

TEST(Conversation, RefusesWhatItCantRead) {
  EXPECT_THAT(error_of([] { Chat(model(), {.tools = "{}"}); }).what(),
              HasSubstr("tools: an object, expected a JSON array"));
  EXPECT_THAT(error_of([] { Chat(model(), {.date = "soon"}); }).what(), HasSubstr("soon"));
  Chat chat(model());
  EXPECT_THAT(error_of([&] { chat.set_history("{}"); }).what(), HasSubstr("expected an array"));
}

}  // namespace
}  // namespace trtmc
