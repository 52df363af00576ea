// What the JSON objects of one answer of OpenAI's API have in common: who answers, and what it
// took.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "server/api_error.h"
#include "server/model_catalogue.h"
#include "trtmc/values.h"

namespace trtmc {

// `digits` random hexadecimal digits.
std::string random_hex(int digits);

// The members in front of "choices", the same in every piece of an answer.
class AnswerObject {
 public:
  // `id_prefix`: "chatcmpl-"; `object`: "chat.completion.chunk".
  AnswerObject(std::string_view id_prefix, std::string_view object, const ServedModel& model);

  // With these choices; a null `usage` is a member only if `shows_null_usage`.
  std::string with(Json::Array choices, const Json& usage, bool shows_null_usage = false) const;

 private:
  std::string head_;  // An object without its closing brace.
};

// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json usage_json(const Usage& usage);

// What a client is told whose answer ends since the server does.
ApiError cut_off_error();

}  // namespace trtmc
