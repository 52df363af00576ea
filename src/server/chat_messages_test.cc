#include "server/chat_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

std::string read(std::string_view messages) {
  const Json json = Json::parse(messages);
  return Json(read_messages(JsonCursor(json, "messages"))).dump();
}

ChatTemplate chat_template(std::string_view name) {
  return ChatTemplate(read_file(std::filesystem::path(TRTMC_SOURCE_DIR) / name).c_str(),
                      {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

ChatInput input_of(std::string_view messages) {
  ChatInput input;
  input.messages = Json::parse(messages);
  input.local_time = parse_date("2026-09-04");
  return input;
}

const ChatTemplate& smollm3() {
  static const ChatTemplate instance = chat_template("models/smollm3-tiny/chat_template.jinja");
  return instance;
}

std::string rendered(const ChatTemplate& by, std::string_view messages) {
  return render_with_system_messages(by, input_of(messages));
}

TEST(ChatMessages, StayAsTheyAre) {
  const std::string messages =
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi","name":"Ann"},)"
      R"({"role":"assistant","content":""},{"role":"tool","tool_call_id":"1","content":"x"}])";
  EXPECT_EQ(read(messages), messages);
}

TEST(ChatMessages, ADeveloperSpeaksAsTheSystem) {
  EXPECT_EQ(read(R"([{"role": "developer", "content": "Be brief."}])"),
            R"([{"role":"system","content":"Be brief."}])");
  EXPECT_EQ(read(R"([{"role": "function", "name": "f", "content": "1"}])"),
            R"([{"role":"tool","name":"f","content":"1"}])");
}

TEST(ChatMessages, TextPartsAreJoined) {
  EXPECT_EQ(read(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                                                  {"type": "text", "text": "b"}]}])"),
            R"([{"role":"user","content":"a\nb"}])");
  EXPECT_EQ(read(R"([{"role": "user", "content": []}])"), R"([{"role":"user","content":""}])");
}

TEST(ChatMessages, AnAssistantNeedsNoContent) {
  EXPECT_EQ(read(R"([{"role": "assistant", "content": null}])"),
            R"([{"role":"assistant","content":null}])");
  EXPECT_EQ(read(R"([{"role": "assistant"}])"), R"([{"role":"assistant"}])");
}

TEST(ChatMessages, ArgumentsOfCallsAreWhatTheirTextSays) {
  const auto arguments = [](std::string_view text) {
    return read(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" +
                std::string(text) + "}}]}]");
  };
  EXPECT_THAT(arguments(R"("{\"a\": [1]}")"), HasSubstr(R"("arguments":{"a":[1]})"));
  EXPECT_THAT(arguments(R"({"a":[1]})"), HasSubstr(R"("arguments":{"a":[1]})"));
  EXPECT_THAT(arguments(R"("{\"a")"), HasSubstr(R"("arguments":"{\"a")"));
  EXPECT_THAT(arguments(R"("5")"), HasSubstr(R"("arguments":"5")"));
}

TEST(ChatMessages, WhatIsWrongIsNamed) {
  const auto message = [](std::string_view messages) {
    return std::string(error_of([&] { read(messages); }).what());
  };
  EXPECT_EQ(message("[]"), "messages: empty, expected at least one message");
  EXPECT_EQ(message("5"), "messages: an integer, expected an array");
  EXPECT_EQ(message("[5]"), "messages[0]: an integer, expected an object");
  EXPECT_EQ(message(R"([{"content": "x"}])"), R"(messages[0]: "role" is missing)");
  EXPECT_EQ(message(R"([{"role": "bot", "content": "x"}])"),
            R"(messages[0].role: "bot", expected system, developer, user, assistant or tool)");
  EXPECT_EQ(message(R"([{"role": "user", "content": null}])"),
            "messages[0].content: null, expected text");
  EXPECT_EQ(message(R"([{"role": "tool"}])"), R"(messages[0]: "content" is missing)");
  EXPECT_EQ(message(R"([{"role": "user", "content": 5}])"),
            "messages[0].content: an integer, expected a string or an array of text parts");
  EXPECT_EQ(
      message(
          R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}])"),
      R"(messages[0].content[0].type: "image_url" is not supported, only text)");
  EXPECT_EQ(message(R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])"),
            R"(messages[0].tool_calls[0].function: "name" is missing)");
  EXPECT_EQ(
      message(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":5}}]}])"),
      "messages[0].tool_calls[0].function.arguments: an integer, expected a string");
}

TEST(SystemMessages, TheFirstIsWhereTheTemplateLooksForIt) {
  EXPECT_THAT(rendered(smollm3(), R"([{"role": "system", "content": "Be brief."},
                                      {"role": "user", "content": "Hi"}])"),
              HasSubstr("## Custom Instructions\n\nBe brief.\n\n"));
}

TEST(SystemMessages, FlagsThatTheTemplateTakesOutAreNotLost) {
  EXPECT_THAT(rendered(smollm3(), R"([{"role": "system", "content": "Be brief. /no_think"},
                                      {"role": "user", "content": "Hi"}])"),
              HasSubstr("Reasoning Mode: /no_think"));
}

TEST(SystemMessages, SeveralFirstOnesAreJoinedForATemplateThatTakesOne) {
  EXPECT_EQ(rendered(smollm3(), R"([{"role": "system", "content": "Be brief."},
                                    {"role": "system", "content": "Be kind."},
                                    {"role": "user", "content": "Hi"}])"),
            rendered(smollm3(), R"([{"role": "system", "content": "Be brief.\n\nBe kind."},
                                    {"role": "user", "content": "Hi"}])"));
}

TEST(SystemMessages, OneFurtherDownIsRefusedByATemplateThatLosesIt) {
  const Error error = error_of([] {
    rendered(smollm3(), R"([{"role": "system", "content": "Be brief."},
                            {"role": "user", "content": "Hi"},
                            {"role": "system", "content": "Be kind."}])");
  });
  EXPECT_STREQ(error.what(),
               "messages[2]: a system message that the model's chat template leaves out");
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error_of([] {
              rendered(smollm3(), R"([{"role": "user", "content": "Hi"},
                                                  {"role": "system", "content": " \n"}])");
            }).code(),
            ErrorCode::kInternal)
      << "nothing is lost of an empty one";
}

TEST(SystemMessages, ATemplateThatTakesThemAnywhereGetsThemAsTheyAre) {
  const ChatTemplate chatml = chat_template("tests/golden/templates/chatml.jinja");
  EXPECT_EQ(rendered(chatml, R"([{"role": "system", "content": "Be brief."},
                                 {"role": "system", "content": "Be kind."},
                                 {"role": "user", "content": "Hi"},
                                 {"role": "system", "content": "Be quick."}])"),
            chatml.render(input_of(R"([{"role": "system", "content": "Be brief."},
                                       {"role": "system", "content": "Be kind."},
                                       {"role": "user", "content": "Hi"},
                                       {"role": "system", "content": "Be quick."}])")));
}

TEST(SystemMessages, WordsThatLookLikeOursChangeNothing) {
  const ChatTemplate last("{{ messages[0].content }}{{ messages[1].content }}");
  EXPECT_EQ(rendered(last, R"([{"role": "system", "content": "a"},
                               {"role": "user", "content": "system message "}])"),
            "asystem message ");
  EXPECT_STREQ(error_of([&] {
                 rendered(smollm3(), R"([{"role": "user", "content": "Hi"},
                     {"role": "system", "content": "Be kind."},
                     {"role": "user", "content": "system message 1 of 99999999999999999999"},
                     {"role": "user", "content": "system message "}])");
               }).what(),
               "messages[1]: a system message that the model's chat template leaves out");
}

TEST(SystemMessages, ManyOfThemTakeNoLonger) {
  std::string messages = "[";
  for (int i = 0; i < 2000; ++i) messages += R"({"role":"system","content":"x"},)";
  messages += R"({"role":"user","content":"Hi"}])";
  EXPECT_THAT(rendered(smollm3(), messages), HasSubstr("x\n\nx\n\nx"));
}

TEST(SystemMessages, ATemplateThatTakesNoneRefuses) {
  const ChatTemplate none("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_STREQ(error_of([&] {
                 rendered(none, R"([{"role": "system", "content": "Be brief."},
                                    {"role": "user", "content": "Hi"}])");
               }).what(),
               "messages[0]: a system message that the model's chat template leaves out");
}

}  // namespace
}  // namespace trtmc
