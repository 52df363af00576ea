// What the JSON objects of one answer of OpenAI's API have in common: who answers, and what it
// took.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/model_catalogue.h"
#include "server/request_fields.h"
#include "server/sse.h"
#include "trtmc/values.h"

namespace trtmc {

// `digits` random hexadecimal digits.
std::string random_hex(int digits);

// The members in front of "choices", the same in every piece of an answer.
class AnswerObject {
 public:
  // `id_prefix`: "chatcmpl-"; `object`: "chat.completion.chunk".
  AnswerObject(std::string_view id_prefix, std::string_view object, const ServedModel& model);

  // With these choices, JSON with commas in between; a null `usage` is a member only if
  // `shows_null_usage`.
  std::string with(std::string_view choices, const Json& usage,
                   bool shows_null_usage = false) const;

 private:
  std::string head_;  // An object without its closing brace.
};

// A choice: the members of `head`, then "logprobs", which is JSON already (empty: null), and
// "finish_reason".
std::string choice_text(const Json& head, std::string_view logprobs, const Json& finish);

// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json usage_json(const Usage& usage);

// An answer that is sent once all of its choices are there. One that is cut off, since the server
// stops, fails instead.
class WholeAnswer {
 public:
  WholeAnswer(std::shared_ptr<Exchange> exchange, int num_choices)
      : exchange_(std::move(exchange)), choices_(static_cast<size_t>(num_choices)) {}

  void set(int choice, std::string json) {
    choices_[static_cast<size_t>(choice)] = std::move(json);
  }
  void end(const AnswerObject& object, const Json& usage, bool is_cut_off);
  void fail(const ApiError& error) { exchange_->respond(error_response(error)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  std::vector<std::string> choices_;  // JSON.
};

// One that is sent in pieces of a choice each.
class StreamedAnswer {
 public:
  StreamedAnswer(std::shared_ptr<Exchange> exchange, StreamFields fields)
      : events_(std::move(exchange)), fields_(fields) {}

  void start() { events_.start(); }
  void send(const AnswerObject& object, std::string_view choice);
  void end(const AnswerObject& object, const Json& usage, bool is_cut_off);
  void fail(const ApiError& error) { events_.fail(error); }

 private:
  EventStream events_;
  const StreamFields fields_;
};

}  // namespace trtmc
