// POST /v1/chat/completions on the embedded model, against what Transformers recorded of it.
#include "server/openai_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <thread>

#include "api/question.h"
#include "base/file.h"
#include "tests/support/chat_choices.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kTool[] =
    R"({"name": "get_weather", "description": "Get the weather in a city", "parameters": )"
    R"({"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, )"
    R"("required": ["city"]}})";

// A question of reference.json and what Transformers answers greedily.
struct Golden {
  std::string user, text;
  bool think = false, tools = false;
  int64_t prompt_tokens = 0, completion_tokens = 0;
  std::string finish = "stop";
};

Golden read_golden(const JsonCursor& prompt) {
  Golden golden{.user = prompt.at("user").string(),
                .text = prompt.at("float32").at("greedy_text").string(),
                .think = prompt.at("think").boolean(),
                .tools = prompt.find_set("tools").has_value()};
  golden.prompt_tokens = static_cast<int64_t>(prompt.at("input_ids").elements().size());
  golden.completion_tokens =
      static_cast<int64_t>(prompt.at("float32").at("greedy_ids").elements().size());
  const size_t end = golden.text.find("<|im_end|>");
  if (end == std::string::npos) {
    golden.finish = "length";
  } else {
    golden.text.resize(end);
    --golden.completion_tokens;
  }
  return golden;
}

std::vector<Golden> goldens() {
  const Json json = Json::parse(read_file(std::filesystem::path(TRTMC_SOURCE_DIR) /
                                          "tests/golden/smollm3-tiny/reference.json"));
  std::vector<Golden> result;
  for (const JsonCursor& prompt : JsonCursor(json).at("prompts").elements()) {
    if (prompt.at("kind").string() == "chat") result.push_back(read_golden(prompt));
  }
  return result;
}

// The text of a choice with its reasoning and calls as the model wrote them.
std::string model_text(const ChatChoice& choice) {
  std::string text;
  if (!choice.reasoning.empty()) text += "<think>\n" + choice.reasoning + "\n</think>\n";
  text += choice.content;
  for (const ChatCall& call : choice.calls) {
    text += "<tool_call>\n{\"name\": \"" + call.name + "\", \"arguments\": " + call.arguments +
            "}\n</tool_call>";
  }
  return text;
}

Json request_for(const Golden& golden) {
  Json kwargs, request;
  kwargs.set("enable_thinking", golden.think);
  request.set("model", "tiny");
  request.set("messages", Json::Array{message("user", golden.user)});
  if (golden.tools) request.set("tools", Json::Array{Json::parse(kTool)});
  request.set("chat_template_kwargs", std::move(kwargs));
  request.set("date", "2026-01-01");  // The goldens' prompts name the day.
  request.set("temperature", 0);
  request.set("max_tokens", 48);
  return request;
}

TEST(OpenAiChat, AnswersAsTransformers) {
  const auto all = goldens();
  ASSERT_THAT(all, SizeIs(6));
  for (const Golden& golden : all) {
    const Json json = embedded_server().chat(request_for(golden).dump())->json();
    const ChatChoice choice = whole_choices(json).at(0);
    EXPECT_EQ(model_text(choice), golden.text);
    EXPECT_EQ(choice.finish, golden.tools ? "tool_calls" : golden.finish);
    const JsonCursor usage = JsonCursor(json).at("usage");
    EXPECT_EQ(usage.at("prompt_tokens").integer(), golden.prompt_tokens);
    EXPECT_EQ(usage.at("completion_tokens").integer(), golden.completion_tokens);
  }
}

TEST(OpenAiChat, StreamsWhatItAnswersInOnePiece) {
  for (const Golden& golden : goldens()) {
    Json request = request_for(golden);
    request.set("logprobs", true);
    request.set("top_logprobs", 2);
    const Json whole = embedded_server().chat(request.dump())->json();
    request.set("stream", true);
    request.set("stream_options", Json::parse(R"({"include_usage": true})"));
    const ChatStream stream = streamed_choices(embedded_server().chat(request.dump())->events());
    EXPECT_EQ(stream.choices, whole_choices(whole));
    for (const char* member : {"prompt_tokens", "completion_tokens", "total_tokens"}) {
      EXPECT_EQ(stream.usage.find(member)->dump(), whole.find("usage")->find(member)->dump());
    }
    EXPECT_EQ(*stream.usage.find("completion_tokens_details"),
              *whole.find("usage")->find("completion_tokens_details"));
  }
}

TEST(OpenAiChat, AnswersInTheShapeOfTheSpecification) {
  const auto exchange = embedded_server().chat(request_for(goldens().front()).dump());
  const Json json = exchange->json();
  EXPECT_EQ(*exchange->response().headers.find("content-type"), "application/json");
  std::string names;
  for (const auto& [name, value] : *json.object()) names += name + " ";
  EXPECT_EQ(names, "id object created model system_fingerprint choices usage ");
  const JsonCursor answer(json);
  EXPECT_THAT(answer.at("id").string(), AllOf(StartsWith("chatcmpl-"), SizeIs(41)));
  EXPECT_EQ(answer.at("object").string(), "chat.completion");
  EXPECT_NEAR(static_cast<double>(answer.at("created").integer()),
              static_cast<double>(std::time(nullptr)), 100);
  EXPECT_EQ(answer.at("model").string(), "tiny");
  EXPECT_EQ(answer.at("choices").json().dump(),
            R"([{"index":0,"message":{"role":"assistant","content":"The capital of France is )"
            R"(Paris.","refusal":null},"logprobs":null,"finish_reason":"stop"}])");
  const JsonCursor usage = answer.at("usage");
  EXPECT_EQ(usage.at("total_tokens").integer(),
            usage.at("prompt_tokens").integer() + usage.at("completion_tokens").integer());
}

TEST(OpenAiChat, StreamsInTheShapeOfTheSpecification) {
  Json request = request_for(goldens().front());
  request.set("stream", true);
  request.set("max_tokens", 1);
  const auto exchange = embedded_server().chat(request.dump());
  EXPECT_EQ(*exchange->response().headers.find("content-type"), "text/event-stream");
  EXPECT_EQ(*exchange->response().headers.find("cache-control"), "no-cache");
  std::vector<std::string> choices;
  std::set<std::string> ids;
  for (const std::string& event : exchange->events()) {
    if (event == "[DONE]") break;
    const Json json = Json::parse(event);
    EXPECT_EQ(json.find("usage"), nullptr) << "nobody asked";
    ids.insert(*json.find("id")->string());
    choices.push_back(json.find("choices")->dump());
  }
  EXPECT_THAT(ids, SizeIs(1));
  EXPECT_THAT(
      choices,
      testing::ElementsAre(
          R"([{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}])",
          R"([{"index":0,"delta":{"content":"The"},"logprobs":null,"finish_reason":null}])",
          R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}])"));
}

TEST(OpenAiChat, SaysHowManyTokensOfThePromptWereThere) {
  Json request = request_for(goldens().front());
  request.set("messages", Json::Array{message("user", "Is this a question that was asked twice?")});
  const auto cached = [&] {
    const Json json = embedded_server().chat(request.dump())->json();
    return JsonCursor(json).at("usage").at("prompt_tokens_details").at("cached_tokens").integer();
  };
  cached();
  EXPECT_THAT(cached(), Ge(32));
}

TEST(OpenAiChat, DrawsEqualAnswersForEqualSeeds) {
  Json request = request_for(goldens().at(1));
  request.set("temperature", 1.5);
  request.set("max_tokens", 12);
  request.set("n", 3);
  request.set("seed", 7);
  const auto choices = [&] {
    return whole_choices(embedded_server().chat(request.dump())->json());
  };
  const auto first = choices();
  EXPECT_THAT(first, SizeIs(3));
  EXPECT_EQ(choices(), first);
  EXPECT_NE(first.at(0), first.at(1));
  request.set("seed", -7);
  EXPECT_NE(choices(), first);
}

TEST(OpenAiChat, C45SamplesAsTheRequestSaysElseAsTheBundleDoes) {
  const auto sampled = [](std::string_view how) {
    Json request = request_for(goldens().at(1));
    request.set("max_tokens", 24);
    request.set("seed", 3);
    request.set("temperature", Json());
    const Json members = Json::parse(how);
    for (const auto& [key, value] : *members.object()) request.set(key, value);
    return whole_choices(embedded_server().chat(request.dump())->json()).at(0).content;
  };
  const std::string by_bundle = sampled("{}");  // Of generation_config.json: 0.6 and 0.95.
  EXPECT_EQ(by_bundle, sampled(R"({"temperature": 0.6, "top_p": 0.95})"));
  EXPECT_NE(by_bundle, sampled(R"({"temperature": 1, "top_p": 1})"));
  EXPECT_NE(by_bundle, sampled(R"({"temperature": 0})"));
}

TEST(OpenAiChat, StreamsSeveralAnswers) {
  Json request = request_for(goldens().at(1));
  request.set("temperature", 1.5);
  request.set("max_tokens", 12);
  request.set("n", 3);
  request.set("seed", 7);
  const auto whole = whole_choices(embedded_server().chat(request.dump())->json());
  request.set("stream", true);
  EXPECT_EQ(streamed_choices(embedded_server().chat(request.dump())->events()).choices, whole);
}

TEST(OpenAiChat, ReportsLogprobsOfTheModelItself) {
  Json request = request_for(goldens().front());
  request.set("logprobs", true);
  request.set("top_logprobs", 3);
  const Json json = embedded_server().chat(request.dump())->json();
  const auto choice = whole_choices(json).at(0);
  std::string text;
  for (const Json& token : choice.logprobs) {
    const JsonCursor cursor(token);
    text += cursor.at("token").string();
    EXPECT_EQ(cursor.at("top_logprobs").elements().size(), 3u);
    // Greedy: the token is the most likely one.
    EXPECT_EQ(cursor.at("top_logprobs").elements().at(0).at("logprob").json(),
              cursor.at("logprob").json());
    EXPECT_LE(cursor.at("logprob").number(), 0);
    std::string bytes;
    for (const JsonCursor& byte : cursor.at("bytes").elements()) {
      bytes += static_cast<char>(byte.integer_in(0, 255));
    }
    EXPECT_EQ(bytes, cursor.at("token").string());
  }
  EXPECT_EQ(text, choice.content);
}

TEST(OpenAiChat, AClientThatGoesEndsItsAnswer) {
  Json request = request_for(goldens().at(1));
  request.set("max_tokens", 3000);
  request.set("ignore_eos", true);
  request.set("stream", true);
  const Engine& engine = embedded_server().model().engine;
  const int64_t before = engine.stats().generated_tokens;
  const auto exchange = embedded_server().chat(request.dump());
  exchange->await_pieces(3);
  exchange->leave();
  // The task ends before the engine's last step does.
  while (embedded_server().pump().num_tasks() > 0 || engine.stats().running_sequences > 0) {
    std::this_thread::yield();
  }
  EXPECT_LT(engine.stats().generated_tokens - before, 1000);
}

TEST(OpenAiChat, RefusesAPromptLongerThanTheContext) {
  Json request = request_for(goldens().front());
  std::string text;
  for (int i = 0; i < 5000; ++i) text += " word";
  request.set("messages", Json::Array{message("user", text)});
  const auto exchange = embedded_server().chat(request.dump());
  EXPECT_EQ(exchange->status(), 400);
  const Json json = exchange->json();
  const JsonCursor error = JsonCursor(json).at("error");
  EXPECT_EQ(error.at("param").string(), "messages");
  EXPECT_EQ(error.at("code").string(), "context_length_exceeded");
  EXPECT_EQ(error.at("type").string(), "invalid_request_error");
  EXPECT_THAT(error.at("message").string(),
              HasSubstr("tokens leave no room for an answer in a context of 4096"));
}

TEST(OpenAiChat, NamesAModelThatIsNotThere) {
  const auto exchange = embedded_server().chat(R"({"model": "gpt-4", "messages": []})");
  EXPECT_EQ(exchange->status(), 404);
  EXPECT_EQ(exchange->json().dump(),
            R"({"error":{"message":"model: \"gpt-4\" is not served, only \"tiny\"",)"
            R"("type":"invalid_request_error","param":"model","code":"model_not_found"}})");
}

TEST(OpenAiChat, PassesOnWhatTheTemplateSays) {
  Json request = request_for(goldens().front());
  request.set("chat_template_kwargs", Json::parse(R"({"xml_tools": 5})"));
  const auto exchange = embedded_server().chat(request.dump());
  EXPECT_EQ(exchange->status(), 400);
  EXPECT_THAT(exchange->response().body, HasSubstr("chat template: "));
}

}  // namespace
}  // namespace trtmc
