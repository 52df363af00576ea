// What other servers got wrong in their answers, each with its trigger: the tokens of an answer are
// given, what a client gets is looked at. The numbers are those of the collected reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "api/question.h"
#include "base/log.h"
#include "tests/support/chat_choices.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kTools[] =
    R"([{"type": "function", "function": {"name": "get_current_weather", "parameters": )"
    R"({"type": "object", "properties": {"location": {"type": "string"}, "unit": {"type": "string"}}}}}])";

class ChatAnswers : public testing::Test {
 protected:
  // The tests of failures would otherwise print them.
  ChatAnswers() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~ChatAnswers() override { set_log_sink({}); }

  // The answer that a client puts together, in one piece and streamed.
  ChatChoice answer(std::string_view text, Json request = Json::Object()) {
    return answer_to(std::move(request), [&] { model().answer_with(text); });
  }
  ChatChoice answer(std::vector<TokenId> ids, Json request = Json::Object()) {
    return answer_to(std::move(request), [&] { model().answer_with(ids); });
  }

  static Json with(std::string_view members) { return Json::parse(members); }
  static Json with_tools(std::string_view members = "{}") {
    Json request = Json::parse(members);
    request.set("tools", Json::parse(kTools));
    return request;
  }

  static ScriptedServer& model() {
    static ScriptedServer instance;
    return instance;
  }

  Json whole_;                       // The answer in one piece.
  std::vector<std::string> events_;  // Of the streamed one.

 private:
  template <typename Script>
  ChatChoice answer_to(Json request, Script&& script) {
    if (!request.find("messages")) {
      request.set("messages", Json::Array{message("user", "Weather in Paris?")});
    }
    request.set("temperature", 0);
    script();
    whole_ = model().server().chat(request.dump())->json();
    const auto choices = whole_choices(whole_);
    request.set("stream", true);
    script();
    events_ = model().server().chat(request.dump())->events();
    EXPECT_EQ(streamed_choices(events_).choices, choices);
    return choices.at(0);
  }
};

TEST_F(ChatAnswers, C15AnAssistantWithoutContentKeepsItsTurn) {
  for (const char* content : {R"("content": null, )", ""}) {
    Json request = with_tools();
    request.set("messages",
                Json::parse(std::string(R"([{"role": "user", "content": "Weather in Paris?"},
                    {"role": "assistant", )") +
                            content + R"("tool_calls": [{"id": "1", "type": "function", "function":
                    {"name": "get_current_weather", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "1", "content": "Sunny"}])"));
    EXPECT_EQ(answer("It is sunny.", std::move(request)).content, "It is sunny.");
  }
}

TEST_F(ChatAnswers, C35StreamedArgumentsAreComplete) {
  const std::string arguments = R"({"location": "Paris", "unit": "celsius"})";
  const ChatChoice choice =
      answer("<tool_call>\n{\"name\": \"get_current_weather\", \"arguments\": " + arguments +
                 "}\n</tool_call>",
             with_tools());
  EXPECT_THAT(choice.calls, ElementsAre(ChatCall{"", "get_current_weather", arguments}));
  EXPECT_THAT(choice.calls.at(0).id, SizeIs(29));
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.finish, "tool_calls");
  EXPECT_TRUE(JsonCursor(whole_).at("choices").elements()[0].at("message").at("content").is_null());
}

TEST_F(ChatAnswers, C36BracketsInArgumentsCountAsWhatTheyAre) {
  for (const char* arguments :
       {R"([{"a": 1}, {"b": [2, {}]}])", R"("{test1,test2")", R"("}]}\"{[")", R"("</tool_call>")",
        R"({"deep": {"deeper": {"x": "}"}}})"}) {
    const std::string object = std::string(R"({"value": )") + arguments + "}";
    const ChatChoice choice = answer(
        "<tool_call>{\"name\": \"f\", \"arguments\": " + object + "}</tool_call>", with_tools());
    EXPECT_THAT(choice.calls, ElementsAre(ChatCall{"", "f", object}));
  }
}

TEST_F(ChatAnswers, SeveralCallsComeInTheirOrderBehindText) {
  const std::string text =
      "I'll check.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"n\": 1}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"b\"}\n</tool_call>";
  ChatChoice choice = answer(text, with_tools());
  EXPECT_EQ(choice.content, "I'll check.");
  EXPECT_THAT(choice.calls, ElementsAre(ChatCall{"", "a", R"({"n": 1})"}, ChatCall{"", "b", "{}"}));
  EXPECT_NE(choice.calls.at(0).id, choice.calls.at(1).id);
  choice = answer(text, with_tools(R"({"parallel_tool_calls": false})"));
  EXPECT_THAT(choice.calls, ElementsAre(ChatCall{"", "a", R"({"n": 1})"}));
  EXPECT_EQ(choice.finish, "tool_calls");
}

TEST_F(ChatAnswers, ArgumentsThatAreAStringAreNotEncodedTwice) {
  const ChatChoice choice =
      answer(R"(<tool_call>{"name": "f", "arguments": "{\"city\": \"Paris\"}"}</tool_call>)",
             with_tools());
  EXPECT_THAT(choice.calls, ElementsAre(ChatCall{"", "f", R"({"city": "Paris"})"}));
}

TEST_F(ChatAnswers, AMalformedCallIsContent) {
  for (const char* text : {"<tool_call>\n{\"name\": \"f\", \"arguments\": {]}\n</tool_call>",
                           "<tool_call>no JSON</tool_call>", "<tool_call>{\"name\": 5}</tool_call>",
                           "<tool_call>\n{\"name\": \"f\", \"arg"}) {
    const ChatChoice choice = answer(text, with_tools());
    EXPECT_EQ(choice.content, text);
    EXPECT_THAT(choice.calls, IsEmpty());
    EXPECT_EQ(choice.finish, "stop");
  }
}

TEST_F(ChatAnswers, ACallWithoutToolsToCallIsContent) {
  const std::string text = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(answer(text).content, text);
  EXPECT_EQ(answer(text, with_tools(R"({"tool_choice": "none"})")).content, text);
  EXPECT_THAT(answer(text, with_tools(R"({"tool_choice": "auto"})")).calls, SizeIs(1));
  EXPECT_THAT(
      answer(text, with(R"({"chat_template_kwargs": {"xml_tools": [{"name": "f"}]}})")).calls,
      SizeIs(1));
}

TEST_F(ChatAnswers, CodeForPythonToolsIsContent) {
  const std::string text = "<code>get_weather(city=\"Copenhagen\")</code>";
  EXPECT_EQ(answer(text, with(R"({"chat_template_kwargs": {"python_tools": ["def f(): pass"]}})"))
                .content,
            text);
}

TEST_F(ChatAnswers, C38WithoutThinkingAllTextIsContent) {
  for (const char* request : {R"({"chat_template_kwargs": {"enable_thinking": false}})",
                              R"({"reasoning_effort": "none"})",
                              R"({"messages": [{"role": "system", "content": "/no_think"},
                         {"role": "user", "content": "Hi"}]})"}) {
    const ChatChoice choice = answer("Paris.", with(request));
    EXPECT_EQ(choice.content, "Paris.") << request;
    EXPECT_EQ(choice.reasoning, "");
    EXPECT_EQ(answer("<think>\nx\n</think>\nParis.", with(request)).content,
              "<think>\nx\n</think>\nParis.");
  }
}

TEST_F(ChatAnswers, ReasoningComesApart) {
  const ChatChoice choice = answer("<think>\nHm, 7 + 5.\n</think>\n12.");
  EXPECT_EQ(choice.reasoning, "Hm, 7 + 5.");
  EXPECT_EQ(choice.content, "12.");
  EXPECT_EQ(choice.finish, "stop");
}

TEST_F(ChatAnswers, C39ThinkingWithoutATagIsContent) {
  const ChatChoice choice = answer("12.");
  EXPECT_EQ(choice.reasoning, "");
  EXPECT_EQ(choice.content, "12.");
}

TEST_F(ChatAnswers, C39ThinkingThatNeverEndsIsReasoning) {
  const ChatChoice choice = answer("<think>\nHm, and then, and then", with(R"({"max_tokens": 6})"));
  EXPECT_THAT(choice.reasoning, testing::StartsWith("Hm"));
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.finish, "length");
}

TEST_F(ChatAnswers, C41CallsComeAfterThinkingAndNotWithin) {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  ChatChoice choice = answer("<think>\nI call it.\n</think>\n" + call, with_tools());
  EXPECT_EQ(choice.reasoning, "I call it.");
  EXPECT_THAT(choice.calls, SizeIs(1));
  choice = answer("<think>\nShall I " + call + "?\n</think>\nNo.", with_tools());
  EXPECT_EQ(choice.reasoning, "Shall I " + call + "?");
  EXPECT_THAT(choice.calls, IsEmpty());
  EXPECT_EQ(choice.content, "No.");
}

TEST_F(ChatAnswers, C42CodePointsComeWhole) {
  const std::string text = "Smile 😀, 東京です. 👩‍👩‍👧";
  const auto ids = model().tokenizer().encode(text);
  EXPECT_GT(ids.size(), 20u) << "bytes of their own";
  EXPECT_EQ(answer(text).content, text);
}

TEST_F(ChatAnswers, C42HalfACodePointAtTheEndIsReplaced) {
  auto ids = model().tokenizer().encode("Smile 😀");
  ids.back() = model().end_of_turn();
  EXPECT_EQ(answer(ids).content, "Smile \uFFFD");
  for (const std::string& event : events_) EXPECT_FALSE(find_invalid_utf8(event));
}

TEST_F(ChatAnswers, C44NothingOfAStopStringIsLeft) {
  const ChatChoice choice =
      answer("<code>f()</code> and more", with(R"({"stop": ["Observation:", "</code>"]})"));
  EXPECT_EQ(choice.content, "<code>f()");
  EXPECT_EQ(choice.finish, "stop");
}

TEST_F(ChatAnswers, C44ContentThatIsCutToNothingIsAnEmptyText) {
  answer("</code>", with(R"({"stop": "</code>"})"));
  EXPECT_EQ(JsonCursor(whole_).at("choices").elements()[0].at("message").json().dump(),
            R"({"role":"assistant","content":"","refusal":null})");
  EXPECT_EQ(Json::parse(events_.front()).find("choices")->dump(),
            R"([{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
            R"("finish_reason":null}])");
}

TEST_F(ChatAnswers, C47TheFinishReasonComesLast) {
  answer("<think>\nHm.\n</think>\n12.");
  // streamed_choices() has looked: a piece after one with a reason is an error. This one has it
  // alone.
  const Json last = Json::parse(events_.at(events_.size() - 2));
  EXPECT_EQ(last.find("choices")->dump(),
            R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}])");
}

TEST_F(ChatAnswers, C48UsageComesInAChunkOfItsOwn) {
  model().answer_with("Yes.");
  const auto events =
      model()
          .server()
          .chat(R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": 0,
                           "stream": true, "stream_options": {"include_usage": true}})")
          ->events();
  ASSERT_GT(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json chunk = Json::parse(events[i]);
    ASSERT_NE(chunk.find("usage"), nullptr);
    EXPECT_TRUE(chunk.find("usage")->is_null());
  }
  const Json last = Json::parse(events.at(events.size() - 2));
  EXPECT_EQ(last.find("choices")->dump(), "[]");
  EXPECT_EQ(last.find("usage")->find("completion_tokens")->dump(),
            std::to_string(model().tokenizer().encode("Yes.").size()));
}

TEST_F(ChatAnswers, ReasoningTokensAreThoseUpToTheClosingMarker) {
  const auto reasoning_tokens = [&] {
    return JsonCursor(whole_)
        .at("usage")
        .at("completion_tokens_details")
        .at("reasoning_tokens")
        .integer();
  };
  const auto count = [&](std::string_view text) {
    return static_cast<int64_t>(model().tokenizer().encode(text).size());
  };
  answer("<think>\nHm, 7 + 5.\n</think>\n12.");
  EXPECT_EQ(reasoning_tokens(), count("<think>\nHm, 7 + 5.\n</think>"));
  answer("12. <think>no</think>");
  EXPECT_EQ(reasoning_tokens(), 0);
  answer("<think>\nHm, 7", with(R"({"stop": "7 + 5"})"));
  EXPECT_EQ(reasoning_tokens(), count("<think>\nHm, 7"));
  answer("x", with(R"({"reasoning_effort": "none"})"));
  EXPECT_EQ(reasoning_tokens(), 0);
}

TEST_F(ChatAnswers, SpecialTokensShowOnlyWhenAsked) {
  std::vector<TokenId> ids = model().tokenizer().encode("a");
  ids.push_back(*model().tokenizer().find("<|im_start|>"));
  ids.push_back(model().end_of_turn());
  EXPECT_EQ(answer(ids).content, "a");
  EXPECT_EQ(answer(ids, with(R"({"skip_special_tokens": false})")).content, "a<|im_start|>");
}

TEST_F(ChatAnswers, AnAnswerEndsAtTheTokensThatARequestNames) {
  const TokenId comma = model().tokenizer().encode(",").at(0);
  Json request;
  request.set("stop_token_ids", Json::Array{comma});
  EXPECT_EQ(answer("One, two", request).content, "One");
  Json endless = with(R"({"ignore_eos": true, "max_tokens": 8})");
  EXPECT_EQ(answer("One", endless).finish, "length");
}

TEST_F(ChatAnswers, LogprobsComeForEveryTokenAlsoOfTextThatIsHeldBack) {
  Json request = with(R"({"logprobs": true, "top_logprobs": 1, "stop": "never said"})");
  const std::string text = "Say 😀 never";
  const ChatChoice choice = answer(text, request);
  EXPECT_EQ(choice.content, text);
  EXPECT_EQ(choice.logprobs.size(), model().tokenizer().encode(text).size());
}

// OpenAI: "-9999.0 is used to signify that the token is very unlikely".
TEST_F(ChatAnswers, AnImpossibleTokenHasALogprobThatJsonCanSay) {
  model().set_other_logits(-std::numeric_limits<float>::infinity());
  const ChatChoice choice = answer("Yes.", with(R"({"logprobs": true, "top_logprobs": 20})"));
  model().set_other_logits(0);
  ASSERT_FALSE(choice.logprobs.empty());
  for (const Json& token : choice.logprobs) {
    EXPECT_EQ(JsonCursor(token).at("logprob").number(), 0);
    const auto others = JsonCursor(token).at("top_logprobs").elements();
    ASSERT_THAT(others, SizeIs(20));
    EXPECT_EQ(others[0].at("logprob").number(), 0);
    for (size_t i = 1; i < others.size(); ++i) {
      EXPECT_EQ(others[i].at("logprob").number(), -9999);
    }
  }
}

TEST_F(ChatAnswers, AnErrorBeforeTheAnswerHasItsStatus) {
  model().executor().fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  const auto exchange =
      model().server().chat(R"({"messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(exchange->status(), 503);
  EXPECT_EQ(exchange->json().dump(),
            R"({"error":{"message":"no memory for scratch","type":"server_error",)"
            R"("param":null,"code":null}})");
}

TEST_F(ChatAnswers, AnErrorInTheMiddleOfAStreamIsItsLastEvent) {
  bool failed = false;
  model().executor().during_step = [&](int) {
    if (std::exchange(failed, true)) return;
    model().executor().fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  };
  model().answer_with("Yes.");
  const auto events =
      model()
          .server()
          .chat(R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true})")
          ->events();
  EXPECT_EQ(events.back(), R"({"error":{"message":"no memory for scratch","type":"server_error",)"
                           R"("param":null,"code":null}})");
  EXPECT_THAT(events, Not(testing::Contains("[DONE]")));
  model().executor().during_step = nullptr;
  EXPECT_EQ(answer("Still here.").content, "Still here.");
}

}  // namespace
}  // namespace trtmc
