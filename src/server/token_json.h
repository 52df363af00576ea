// Tokens with their log-probabilities in the two shapes that OpenAI has for them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"
#include "trtmc/trtmc.h"

namespace trtmc {

// Of a chat: {"token", "bytes", "logprob", "top_logprobs"}, where bytes that are no code points
// show as U+FFFD in "token".
Json chat_token_json(const Tokenizer& tokenizer, const Token& token);

// Many of them: {"content": [...], "refusal": null}. Kept as text, a tenth of what a tree of values
// takes.
class ChatLogprobs {
 public:
  void add(const Tokenizer& tokenizer, const Token& token);
  std::string json() const;

 private:
  std::string content_;  // The array's elements.
};

// Where tokens begin within a text, in code points. A token that begins within a code point is said
// to begin where that does.
class TextOffset {
 public:
  explicit TextOffset(int start = 0) : offset_(start) {}
  int value() const { return offset_; }
  void add(std::string_view bytes);

 private:
  int offset_;
  std::string tail_;  // The start of a code point that is not there whole.
};

// Of completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, each an array. A
// token that is no UTF-8 is written as OpenAI does, "bytes:\xf0\x9f", so that names stay apart.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // A token before which there is nothing, so that nothing says how likely it is.
  void add_first(TokenId id, int offset);
  void add(const Token& token, int offset);
  std::string json() const;

 private:
  std::string name(TokenId id) const;
  void add(TokenId id, const Json& logprob, const Json& top, int offset);

  const Tokenizer* tokenizer_;
  // The elements of the arrays, as text.
  std::string tokens_, token_logprobs_, top_logprobs_, text_offset_;
};

}  // namespace trtmc
