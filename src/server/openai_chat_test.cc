// POST /v1/chat/completions, against what Transformers recorded of the embedded model and
// OpenAI's specification.
#include "server/openai_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

TestServer& server() {
  static TestServer instance(embedded_model());
  return instance;
}

constexpr char kCapital[] = R"({
  "model": "tiny",
  "messages": [{"role": "user", "content": "What is the capital of France?"}],
  "chat_template_kwargs": {"enable_thinking": false},
  "temperature": 0,
  "date": "2026-01-01")";

TEST(Chat, AnswersInOnePiece) {
  const Json json = server().chat(std::string(kCapital) + "}")->json();
  const JsonCursor choice = JsonCursor(json).at("choices").elements().at(0);
  EXPECT_EQ(choice.at("message").json().dump(),
            R"({"role":"assistant","content":"The capital of France is Paris.","refusal":null})");
  EXPECT_EQ(choice.at("finish_reason").string(), "stop");
}

TEST(Chat, StreamsTheSameAnswer) {
  const auto events = server().chat(std::string(kCapital) + R"(, "stream": true})")->events();
  std::string text;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const Json json = Json::parse(event);
    const auto delta = JsonCursor(json).at("choices").elements().at(0).at("delta");
    if (const auto content = delta.find_set("content")) text += content->string();
  }
  EXPECT_EQ(text, "The capital of France is Paris.");
  EXPECT_EQ(events.back(), "[DONE]");
}

}  // namespace
}  // namespace trtmc
