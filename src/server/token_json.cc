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

void append(std::string& elements, const Json& json) {
  if (!elements.empty()) elements += ',';
  elements += json.dump();
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

void ChatLogprobs::add(const Tokenizer& tokenizer, const Token& token) {
  append(content_, chat_token_json(tokenizer, token));
}

std::string ChatLogprobs::json() const {
  return "{\"content\":[" + content_ + "],\"refusal\":null}";
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

void CompletionLogprobs::add_first(TokenId id, int offset) { add(id, {}, {}, offset); }

void CompletionLogprobs::add(const Token& token, int offset) {
  Json top;
  for (const TokenLogprob& other : token.top) top.set(name(other.token), shown(other.logprob));
  top.set(name(token.id), shown(token.logprob));  // Though it be none of the most likely.
  add(token.id, shown(token.logprob), top, offset);
}

void CompletionLogprobs::add(TokenId id, const Json& logprob, const Json& top, int offset) {
  append(tokens_, name(id));
  append(token_logprobs_, logprob);
  append(top_logprobs_, top);
  append(text_offset_, offset);
}

std::string CompletionLogprobs::json() const {
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens_,
      token_logprobs_, top_logprobs_, text_offset_);
}

}  // namespace trtmc
