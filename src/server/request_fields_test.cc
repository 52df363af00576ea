// Every field of a chat and of a completion with every kind of value that it can't have, and with
// what the server does not do: a 400 that names the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/question.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

enum class Kind { kFlag, kInteger, kNumber, kText, kList, kObject, kTextOrList, kTextOrObject };

struct Field {
  const char* name;
  Kind kind;
};

constexpr Field kShared[] = {{"model", Kind::kText},
                             {"temperature", Kind::kNumber},
                             {"top_p", Kind::kNumber},
                             {"min_p", Kind::kNumber},
                             {"top_k", Kind::kInteger},
                             {"repetition_penalty", Kind::kNumber},
                             {"presence_penalty", Kind::kNumber},
                             {"frequency_penalty", Kind::kNumber},
                             {"logit_bias", Kind::kObject},
                             {"seed", Kind::kInteger},
                             {"n", Kind::kInteger},
                             {"stop", Kind::kTextOrList},
                             {"stop_token_ids", Kind::kList},
                             {"ignore_eos", Kind::kFlag},
                             {"skip_special_tokens", Kind::kFlag},
                             {"priority", Kind::kInteger},
                             {"max_tokens", Kind::kInteger},
                             {"stream", Kind::kFlag},
                             {"stream_options", Kind::kObject}};

constexpr Field kOfChats[] = {{"messages", Kind::kList},
                              {"tools", Kind::kList},
                              {"tool_choice", Kind::kTextOrObject},
                              {"parallel_tool_calls", Kind::kFlag},
                              {"logprobs", Kind::kFlag},
                              {"top_logprobs", Kind::kInteger},
                              {"max_completion_tokens", Kind::kInteger},
                              {"chat_template_kwargs", Kind::kObject},
                              {"add_generation_prompt", Kind::kFlag},
                              {"reasoning_effort", Kind::kText},
                              {"date", Kind::kText}};

constexpr Field kOfCompletions[] = {
    {"prompt", Kind::kTextOrList}, {"echo", Kind::kFlag}, {"logprobs", Kind::kInteger}};

bool may_be(Kind kind, const Json& value) {
  switch (kind) {
    case Kind::kFlag:
      return value.boolean();
    case Kind::kInteger:
      return value.integer();
    case Kind::kNumber:
      return value.integer() || value.real();
    case Kind::kText:
      return value.string();
    case Kind::kList:
      return value.array();
    case Kind::kObject:
      return value.object();
    case Kind::kTextOrList:
      return value.string() || value.array();
    case Kind::kTextOrObject:
      return value.string() || value.object();
  }
  return true;
}

Json chat_request() {
  return Json::parse(R"({"model": "tiny", "messages": [{"role": "user", "content": "Hi"}],
                         "max_tokens": 1})");
}

Json completion_request() {
  return Json::parse(R"({"model": "tiny", "prompt": "Hi", "max_tokens": 1})");
}

std::shared_ptr<FakeExchange> send(const Json& request) {
  const Json* const messages = request.find("messages");
  return messages && !messages->is_null() ? embedded_server().chat(request.dump())
                                          : embedded_server().complete(request.dump());
}

// The field that a refusal names. "no 400" if it is none.
std::string refused_field(const Json& request) {
  const auto exchange = send(request);
  if (exchange->status() != 400) return "no 400: " + exchange->response().body;
  const Json json = exchange->json();
  const JsonCursor error = JsonCursor(json).at("error");
  EXPECT_EQ(error.at("type").string(), "invalid_request_error");
  const auto param = error.find_set("param");
  if (!param) return "no field: " + error.at("message").string();
  EXPECT_THAT(error.at("message").string(), HasSubstr(param->string()));
  return param->string();
}

void expect_wrong_kinds_refused(const Json& good, std::span<const Field> fields) {
  for (const auto& [name, kind] : fields) {
    for (const char* text :
         {"true", "5", "1.5", "\"text\"", "[]", "{}", "123456789012345678901234567890"}) {
      const Json value = Json::parse(text);
      if (may_be(kind, value)) continue;
      Json request = good;
      request.set(name, value);
      EXPECT_EQ(refused_field(request), name) << text;
    }
  }
}

TEST(RequestFields, OfTheWrongKindAreNamed) {
  expect_wrong_kinds_refused(chat_request(), kShared);
  expect_wrong_kinds_refused(chat_request(), kOfChats);
  expect_wrong_kinds_refused(completion_request(), kShared);
  expect_wrong_kinds_refused(completion_request(), kOfCompletions);
}

TEST(RequestFields, ThatAreNullCountAsLeftOut) {
  for (const Json& good : {chat_request(), completion_request()}) {
    for (const auto& fields : {std::span<const Field>(kShared), std::span<const Field>(kOfChats),
                               std::span<const Field>(kOfCompletions)}) {
      for (const auto& [name, kind] : fields) {
        Json request = good;
        if (request.find(name) && std::string_view(name) != "max_tokens") continue;  // Needed.
        request.set(name, Json());
        request.set("max_tokens", 1);
        EXPECT_EQ(send(request)->status(), 200) << name << send(request)->response().body;
      }
    }
  }
}

TEST(RequestFields, ThatSayNothingHereAreIgnored) {
  for (Json request : {chat_request(), completion_request()}) {
    request.set("user", "Ann");
    request.set("store", true);
    request.set("metadata", Json::parse(R"({"a": "b"})"));
    request.set("service_tier", "auto");
    request.set("what_is_this", Json::Array{1, 2});
    EXPECT_EQ(send(request)->status(), 200) << send(request)->response().body;
  }
}

struct Wrong {
  const char* members;  // In place of those of a good request.
  const char* field;    // That is named.
};

TEST(RequestFields, ThatWouldSlowDownOthersAreBounded) {
  Json request = chat_request();
  request.set("stop", std::string(1025, 'a'));
  EXPECT_EQ(refused_field(request), "stop");
  request.set("stop", Json::Array{"a", std::string(1025, 'a')});
  EXPECT_EQ(refused_field(request), "stop[1]");
  request = chat_request();
  request.set("stop_token_ids", Json::Array(129, Json(1)));
  EXPECT_EQ(refused_field(request), "stop_token_ids");
  request = chat_request();
  Json bias;
  for (int id = 0; id < 1025; ++id) bias.set(std::to_string(id), 1);
  request.set("logit_bias", bias);
  EXPECT_EQ(refused_field(request), "logit_bias");
}

void expect_refused(const Json& good, std::span<const Wrong> wrongs) {
  for (const auto& [text, field] : wrongs) {
    Json request = good;
    const Json members = Json::parse(text);
    for (const auto& [key, value] : *members.object()) request.set(key, value);
    EXPECT_EQ(refused_field(request), field) << text;
  }
}

constexpr Wrong kOutOfRange[] = {
    {R"({"temperature": -0.1})", "temperature"},
    {R"({"top_p": 1.1})", "top_p"},
    {R"({"min_p": -1})", "min_p"},
    {R"({"top_k": -2})", "top_k"},
    {R"({"repetition_penalty": 0})", "repetition_penalty"},
    {R"({"presence_penalty": 2.5})", "presence_penalty"},
    {R"({"frequency_penalty": -2.5})", "frequency_penalty"},
    {R"({"logit_bias": {"5": 101}})", "logit_bias.5"},
    {R"({"logit_bias": {"10240": 1}})", "logit_bias.10240"},
    {R"({"logit_bias": {"-1": 1}})", "logit_bias.-1"},
    {R"({"logit_bias": {"5x": 1}})", "logit_bias.5x"},
    {R"({"logit_bias": {"": 1}})", "logit_bias."},
    {R"({"logit_bias": {"5": "1"}})", "logit_bias.5"},
    {R"({"n": 0})", "n"},
    {R"({"n": 129})", "n"},
    {R"({"stop": ""})", "stop"},
    {R"({"stop": ["a", ""]})", "stop[1]"},
    {R"({"stop": ["a", 5]})", "stop[1]"},
    {R"({"stop": ["a", "b", "c", "d", "e"]})", "stop"},
    {R"({"stop_token_ids": [10240]})", "stop_token_ids[0]"},
    {R"({"max_tokens": -1})", "max_tokens"},
    {R"({"stream_options": {"include_usage": true}})", "stream_options"},
    {R"({"stream": true, "stream_options": {"include_usage": 1}})", "stream_options.include_usage"},
};

constexpr Wrong kOutOfRangeInChats[] = {
    {R"({"max_tokens": 0})", "max_tokens"},
    {R"({"max_completion_tokens": 0})", "max_completion_tokens"},
    {R"({"logprobs": true, "top_logprobs": 21})", "top_logprobs"},
    {R"({"logprobs": true, "top_logprobs": -1})", "top_logprobs"},
    {R"({"top_logprobs": 2})", "top_logprobs"},
    {R"({"messages": []})", "messages"},
    {R"({"messages": [5]})", "messages[0]"},
    {R"({"messages": [{"role": 5, "content": ""}]})", "messages[0].role"},
    {R"({"messages": [{"role": "bot", "content": ""}]})", "messages[0].role"},
    {R"({"messages": [{"role": "user", "content": {}}]})", "messages[0].content"},
    {R"({"messages": [{"role": "user", "content": [5]}]})", "messages[0].content[0]"},
    {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]})",
     "messages[0].content[0].text"},
    {R"({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]})",
     "messages[0].content[0].type"},
    {R"({"messages": [{"role": "assistant", "tool_calls": {}}]})", "messages[0].tool_calls"},
    {R"({"tools": [5]})", "tools[0]"},
    {R"({"tools": [{"type": "web_search"}]})", "tools[0].type"},
    {R"({"tools": [{"type": "function", "function": {"name": ""}}]})", "tools[0].function.name"},
    {R"({"tools": [{"name": 5}]})", "tools[0].name"},
    {R"({"chat_template_kwargs": {"messages": []}})", "chat_template_kwargs.messages"},
    {R"({"reasoning_effort": "much"})", "reasoning_effort"},
    {R"({"date": "today"})", "date"},
};

constexpr Wrong kOutOfRangeInCompletions[] = {
    {R"({"logprobs": 21})", "logprobs"},
    {R"({"logprobs": -1})", "logprobs"},
    {R"({"prompt": ""})", "prompt"},
    {R"({"prompt": []})", "prompt"},
    {R"({"prompt": ["a", ""]})", "prompt[1]"},
    {R"({"prompt": ["a", 5]})", "prompt[1]"},
    {R"({"prompt": [5, "a"]})", "prompt[1]"},
    {R"({"prompt": [10240]})", "prompt[0]"},
    {R"({"prompt": [[5], [-1]]})", "prompt[1][0]"},
    {R"({"prompt": [{}]})", "prompt[0]"},
    {R"({"prompt": ["a", "b"], "n": 65})", "prompt"},
};

TEST(RequestFields, OutOfTheirRangeAreNamed) {
  expect_refused(chat_request(), kOutOfRange);
  expect_refused(completion_request(), kOutOfRange);
  expect_refused(chat_request(), kOutOfRangeInChats);
  expect_refused(completion_request(), kOutOfRangeInCompletions);
}

constexpr Wrong kUnsupported[] = {
    {R"({"guided_json": {}})", "guided_json"},
    {R"({"guided_regex": "a*"})", "guided_regex"},
    {R"({"guided_choice": ["a"]})", "guided_choice"},
    {R"({"guided_grammar": "g"})", "guided_grammar"},
    {R"({"structured_outputs": {}})", "structured_outputs"},
    {R"({"use_beam_search": true})", "use_beam_search"},
    {R"({"min_tokens": 5})", "min_tokens"},
    {R"({"response_format": {"type": "json_object"}})", "response_format"},
    {R"({"stream": true, "stream_options": {"continuous_usage_stats": true}})",
     "stream_options.continuous_usage_stats"},
    {R"({"best_of": 2})", "best_of"},
    {R"({"suffix": "the end"})", "suffix"},
    {R"({"functions": [{"name": "f"}]})", "functions"},
    {R"({"modalities": ["text", "audio"]})", "modalities"},
    {R"({"audio": {"voice": "alloy"}})", "audio"},
    {R"({"web_search_options": {}})", "web_search_options"},
    {R"({"continue_final_message": true})", "continue_final_message"},
    {R"({"prompt_embeds": "AA=="})", "prompt_embeds"},
    {R"({"typical_p": 0.5})", "typical_p"},
    {R"({"repeat_penalty": 1.1})", "repeat_penalty"},
    {R"({"json_schema": {}})", "json_schema"},
    {R"({"grammar": "root ::= x"})", "grammar"},
};

constexpr Wrong kUnsupportedInChats[] = {
    {R"({"tool_choice": "required"})", "tool_choice"},
    {R"({"tool_choice": {"type": "function", "function": {"name": "f"}}})", "tool_choice"},
    {R"({"response_format": {"type": "json_schema", "json_schema": {}}})", "response_format"},
    {R"({"documents": [{"text": "a"}]})", "documents"},
    {R"({"echo": true})", "echo"},
};

constexpr Wrong kUnsupportedInCompletions[] = {
    {R"({"tools": [{"name": "f"}]})", "tools"},
    {R"({"tool_choice": "auto"})", "tool_choice"},
};

TEST(RequestFields, WithAMeaningThatIsNotThereAreNamed) {
  expect_refused(chat_request(), kUnsupported);
  expect_refused(completion_request(), kUnsupported);
  expect_refused(chat_request(), kUnsupportedInChats);
  expect_refused(completion_request(), kUnsupportedInCompletions);
}

TEST(RequestFields, WithAHarmlessValueAreIgnored) {
  Json chat = chat_request();
  const Json more = Json::parse(R"({"response_format": {"type": "text"}, "modalities": ["text"],
      "tool_choice": "none", "tools": [], "use_beam_search": false, "min_tokens": 0, "length_penalty": 1,
      "stream": false, "stop": [], "logit_bias": {}, "top_k": -1})");
  for (const auto& [key, value] : *more.object()) chat.set(key, value);
  EXPECT_EQ(send(chat)->status(), 200) << send(chat)->response().body;
  Json completion = completion_request();
  completion.set("best_of", 1);
  completion.set("suffix", "");
  EXPECT_EQ(send(completion)->status(), 200) << send(completion)->response().body;
}

TEST(RequestFields, ThatAreNeededAreMissed) {
  for (const char* body : {"{}", R"({"messages": null, "prompt": null})"}) {
    EXPECT_EQ(embedded_server().chat(body)->json().dump(),
              R"({"error":{"message":"\"messages\" is missing","type":"invalid_request_error",)"
              R"("param":"messages","code":null}})");
    EXPECT_THAT(embedded_server().complete(body)->response().body,
                HasSubstr(R"(\"prompt\" is missing)"));
  }
}

TEST(RequestFields, KeysThatStandTwiceAreRefused) {
  // A filter in front of the server may have looked at the other one.
  const auto exchange = embedded_server().complete(R"({"prompt": "a", "prompt": "b"})");
  EXPECT_EQ(exchange->status(), 400);
  EXPECT_THAT(exchange->response().body, HasSubstr(R"(the key \"prompt\" stands twice)"));
  Json request = completion_request();
  request.set("logit_bias", Json::parse(R"({"1": 5, "01": -5})"));
  EXPECT_EQ(refused_field(request), "logit_bias.01");
}

TEST(RequestFields, TheLogprobsOfAnEchoHaveALimit) {
  Json request = completion_request();
  request.set("echo", true);
  request.set("logprobs", 20);
  request.set("n", 128);
  request.set("max_tokens", 0);
  // 21 for each of 373 tokens, 128 times, are more than a million.
  request.set("prompt", Json(Json::Array(373, Json(5))));
  EXPECT_EQ(refused_field(request), "prompt");
}

TEST(RequestFields, TheLogprobsOfAWholeAnswerHaveALimit) {
  Json chat = chat_request(), completion = completion_request();
  chat.set("logprobs", true);
  chat.set("top_logprobs", 20);
  completion.set("logprobs", 20);
  for (Json* request : {&chat, &completion}) {
    request->set("n", 128);
    // 21 for each token, 128 times: 373 are more than a million.
    request->set("max_tokens", 373);
    EXPECT_EQ(refused_field(*request), "logprobs");
  }
  // A stream keeps none.
  chat.set("stream", true);
  const auto exchange = send(chat);
  exchange->await_pieces(1);
  EXPECT_TRUE(exchange->is_stream());
  exchange->leave();
}

TEST(RequestFields, PromptsAreCountedBeforeTheyAreRead) {
  Json request = completion_request();
  // Were the first one read its kind would be wrong.
  request.set("prompt", Json(Json::Array(129, Json(Json::Array{Json()}))));
  EXPECT_EQ(refused_field(request), "prompt");
  request.set("prompt", Json(Json::Array(128, Json(Json::Array{Json()}))));
  EXPECT_EQ(refused_field(request), "prompt[0][0]");
}

TEST(RequestFields, QuotesAreShort) {
  Json request = completion_request();
  request.set("model", std::string(100'000, 'x'));
  const auto exchange = send(request);
  EXPECT_EQ(exchange->status(), 404);
  EXPECT_LT(exchange->response().body.size(), 1200U);
}

TEST(RequestFields, ABodyThatIsNoObjectIsRefused) {
  const std::string deep = std::string(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("\xff"), std::string("{\"messages\": \"\xff\"}"), deep,
        "{\"messages\": " + deep + "}", std::string("{} {}"),
        std::string("{\"prompt\": \"a\"}\0", 16), std::string("{\"temperature\": NaN}"),
        std::string("{\"stop\": \"\\ud800\"}")}) {
    for (const auto& exchange : {embedded_server().chat(body), embedded_server().complete(body)}) {
      EXPECT_EQ(exchange->status(), 400) << body.substr(0, 50);
      const Json json = exchange->json();
      EXPECT_THAT(JsonCursor(json).at("error").at("message").string(), HasSubstr("request body: "));
    }
  }
}

}  // namespace
}  // namespace trtmc
