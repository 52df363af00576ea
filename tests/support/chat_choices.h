// The answers of a chat as a client puts them together, from one piece or from a stream, and the
// rules that every stream keeps.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"

namespace trtmc {

struct ChatCall {
  std::string id, name, arguments;
  // Ids are drawn, so they differ from answer to answer.
  bool operator==(const ChatCall& other) const {
    return name == other.name && arguments == other.arguments;
  }
};

struct ChatChoice {
  std::string role, content, reasoning, finish;
  std::vector<ChatCall> calls;
  Json::Array logprobs;
  bool operator==(const ChatChoice&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const ChatChoice& choice) {
  out << choice.role << ": \"" << choice.content << "\" reasoning \"" << choice.reasoning << '"';
  for (const ChatCall& call : choice.calls) out << ' ' << call.name << '(' << call.arguments << ')';
  return out << ' ' << choice.finish << ", " << choice.logprobs.size() << " logprobs";
}

inline std::string text_or_empty(const JsonCursor& object, std::string_view key) {
  const auto text = object.find_set(key);
  return text ? text->string() : "";
}

inline void append_logprobs(const JsonCursor& choice, Json::Array& list) {
  const auto logprobs = choice.find_set("logprobs");
  if (!logprobs) return;
  for (const JsonCursor& token : logprobs->at("content").elements()) list.push_back(token.json());
}

// Of a "chat.completion".
inline std::vector<ChatChoice> whole_choices(const Json& json) {
  std::vector<ChatChoice> result;
  for (const JsonCursor& choice : JsonCursor(json).at("choices").elements()) {
    const JsonCursor message = choice.at("message");
    ChatChoice& read = result.emplace_back();
    read.role = message.at("role").string();
    read.content = text_or_empty(message, "content");
    read.reasoning = text_or_empty(message, "reasoning_content");
    EXPECT_EQ(text_or_empty(message, "reasoning"), read.reasoning);
    EXPECT_EQ(message.at("content").is_null(), read.content.empty() && message.find("tool_calls"));
    read.finish = choice.at("finish_reason").string();
    append_logprobs(choice, read.logprobs);
    if (const auto calls = message.find_set("tool_calls")) {
      for (const JsonCursor& call : calls->elements()) {
        const JsonCursor function = call.at("function");
        EXPECT_EQ(call.at("type").string(), "function");
        read.calls.push_back({call.at("id").string(), function.at("name").string(),
                              function.at("arguments").string()});
      }
    }
  }
  return result;
}

inline void append_call(const JsonCursor& piece, ChatChoice& choice) {
  const auto index = static_cast<size_t>(piece.at("index").integer());
  const JsonCursor function = piece.at("function");
  if (index == choice.calls.size()) {
    EXPECT_EQ(piece.at("type").string(), "function");
    choice.calls.push_back({piece.at("id").string(), function.at("name").string(), ""});
  } else {
    EXPECT_EQ(index + 1, choice.calls.size()) << "a piece of a call that is over";
    EXPECT_FALSE(piece.find("id") || piece.find("type") || function.find("name"));
  }
  choice.calls.at(index).arguments += function.at("arguments").string();
}

inline void append_delta(const JsonCursor& chunk_choice, ChatChoice& choice) {
  const JsonCursor delta = chunk_choice.at("delta");
  EXPECT_EQ(choice.finish, "") << "a piece after the last";
  EXPECT_EQ(choice.role.empty(), delta.find("role").has_value()) << "the role comes first, once";
  choice.role += text_or_empty(delta, "role");
  choice.content += text_or_empty(delta, "content");
  choice.reasoning += text_or_empty(delta, "reasoning_content");
  EXPECT_EQ(text_or_empty(delta, "reasoning_content"), text_or_empty(delta, "reasoning"));
  append_logprobs(chunk_choice, choice.logprobs);
  choice.finish = text_or_empty(chunk_choice, "finish_reason");
  if (const auto calls = delta.find_set("tool_calls")) {
    for (const JsonCursor& piece : calls->elements()) append_call(piece, choice);
  }
}

struct ChatStream {
  std::vector<ChatChoice> choices;
  Json usage;  // Null unless asked for.
};

// Of the events of a stream, which must end well.
inline ChatStream streamed_choices(const std::vector<std::string>& events) {
  ChatStream result;
  EXPECT_FALSE(events.empty());
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_FALSE(find_invalid_utf8(events[i])) << events[i];
    const Json json = Json::parse(events[i]);
    const JsonCursor chunk(json);
    EXPECT_EQ(chunk.at("object").string(), "chat.completion.chunk");
    EXPECT_TRUE(result.usage.is_null()) << "a piece after the usage";
    if (const auto usage = chunk.find_set("usage")) {
      EXPECT_TRUE(chunk.at("choices").elements().empty());
      result.usage = usage->json();
    }
    for (const JsonCursor& choice : chunk.at("choices").elements()) {
      const auto index = static_cast<size_t>(choice.at("index").integer());
      if (index >= result.choices.size()) result.choices.resize(index + 1);
      append_delta(choice, result.choices[index]);
    }
  }
  EXPECT_EQ(events.back(), "[DONE]");
  for (const ChatChoice& choice : result.choices) EXPECT_NE(choice.finish, "");
  return result;
}

}  // namespace trtmc
