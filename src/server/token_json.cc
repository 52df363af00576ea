#include "server/token_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace trtmc {
namespace {

// OpenAI's value for what is as good as impossible; JSON has no infinity.
constexpr float kLeastLogprob = -9999;

double shown(float logprob) { return std::max(logprob, kLeastLogprob); }

Json token_json(const Tokenizer& tokenizer, TokenId id, float logprob) {
  const std::string_view text = tokenizer.token_bytes(id);
  Json::Array bytes;
  for (const char c : text) bytes.emplace_back(static_cast<int>(static_cast<unsigned char>(c)));
  Json json;
  json.set("token", replace_invalid_utf8(text));
  json.set("logprob", shown(logprob));
  json.set("bytes", std::move(bytes));
  return json;
}

int count_code_points(std::string_view utf8) {
  return static_cast<int>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Json chat_token_json(const Tokenizer& tokenizer, const Token& token) {
  Json::Array top;
  for (const TokenLogprob& other : token.top) {
    top.push_back(token_json(tokenizer, other.token, other.logprob));
  }
  Json json = token_json(tokenizer, token.id, token.logprob);
  json.set("top_logprobs", std::move(top));
  return json;
}

void TextOffset::add(std::string_view bytes) {
  tail_ += bytes;
  const size_t whole = tail_.size() - incomplete_utf8_tail(tail_);
  offset_ += count_code_points(replace_invalid_utf8(std::string_view(tail_).substr(0, whole)));
  tail_.erase(0, whole);
}

std::string CompletionLogprobs::name(TokenId id) const {
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (!find_invalid_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

void CompletionLogprobs::add_first(TokenId id, int offset) {
  tokens_.emplace_back(name(id));
  token_logprobs_.emplace_back();
  top_logprobs_.emplace_back();
  text_offset_.emplace_back(offset);
}

void CompletionLogprobs::add(const Token& token, int offset) {
  Json top;
  for (const TokenLogprob& other : token.top) top.set(name(other.token), shown(other.logprob));
  top.set(name(token.id), shown(token.logprob));  // Though it be none of the most likely.
  tokens_.emplace_back(name(token.id));
  token_logprobs_.emplace_back(shown(token.logprob));
  top_logprobs_.push_back(std::move(top));
  text_offset_.emplace_back(offset);
}

Json CompletionLogprobs::json() const {
  Json json;
  json.set("tokens", tokens_);
  json.set("token_logprobs", token_logprobs_);
  json.set("top_logprobs", top_logprobs_);
  json.set("text_offset", text_offset_);
  return json;
}

}  // namespace trtmc
