#include "api/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace trtmc {
namespace {

Manifest manifest(bool with_markers) {
  Manifest result;
  if (with_markers) {
    result.markers = {.think_open = "<think>",
                      .think_close = "</think>",
                      .tool_open = "<tool_call>",
                      .tool_close = "</tool_call>"};
  }
  return result;
}

TEST(ChatInput, BeginsWithTheSystemMessage) {
  const ChatInput input = chat_input(manifest(true), ChatOptions{.system = "Be brief."},
                                     {message("user", "Hi")}, Json());
  EXPECT_EQ(input.messages.dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])");
}

TEST(ChatInput, LeavesReasoningToTheTemplateUnlessAsked) {
  EXPECT_TRUE(chat_input(manifest(true), ChatOptions{}, {}, Json()).template_kwargs.empty());
  const ChatInput input = chat_input(manifest(true), ChatOptions{.think = false}, {}, Json());
  EXPECT_EQ(Json(input.template_kwargs).dump(), R"({"enable_thinking":false})");
}

TEST(ChatInput, RefusesWhatTheModelHasNoMarkersFor) {
  const auto code = [](auto&& body) { return error_of(body).code(); };
  EXPECT_EQ(code([] { chat_input(manifest(false), ChatOptions{.think = true}, {}, Json()); }),
            ErrorCode::kUnsupported);
  EXPECT_EQ(code([] { chat_input(manifest(false), ChatOptions{}, {}, Json::Array{}); }),
            ErrorCode::kUnsupported);
  EXPECT_EQ(code([] { chat_input(manifest(false), R"({"messages": [], "tools": []})", ""); }),
            ErrorCode::kUnsupported);
}

TEST(ChatInput, NamesTheDayThatIsAskedFor) {
  const std::tm day = chat_input(manifest(true), "[]", "2026-09-04").local_time;
  EXPECT_EQ(day.tm_year + 1900, 2026);
  EXPECT_EQ(day.tm_mon + 1, 9);
  EXPECT_EQ(day.tm_mday, 4);
}

TEST(ToolCallJson, HasTheArgumentsAsJson) {
  EXPECT_EQ(to_json(ToolCall{"f", R"({"a": 1})"}).dump(), R"({"name":"f","arguments":{"a":1}})");
}

TEST(ToolCallJson, HasArgumentsThatAreNoJsonAsAString) {
  EXPECT_EQ(to_json(ToolCall{"f", "hello"}).dump(), R"({"name":"f","arguments":"hello"})");
  EXPECT_EQ(to_json(ToolCall{"f", "{\"a"}).dump(), R"({"name":"f","arguments":"{\"a"})");
}

}  // namespace
}  // namespace trtmc
