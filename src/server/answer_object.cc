#include "server/answer_object.h"

#include <fmt/format.h>

#include <ctime>
#include <random>
#include <utility>

namespace trtmc {

std::string random_hex(int digits) {
  std::random_device device;
  std::string text;
  for (int i = 0; i < digits; i += 8) text += fmt::format("{:08x}", device());
  text.resize(static_cast<size_t>(digits));
  return text;
}

AnswerObject::AnswerObject(std::string_view id_prefix, std::string_view object,
                           const ServedModel& model) {
  Json head;
  head.set("id", std::string(id_prefix) + random_hex(32));
  head.set("object", object);
  head.set("created", int64_t{std::time(nullptr)});
  head.set("model", model.name);
  head.set("system_fingerprint", model.fingerprint);
  head_ = head.dump();
  head_.pop_back();
}

std::string AnswerObject::with(std::string_view choices, const Json& usage,
                               bool shows_null_usage) const {
  std::string text = head_;
  text += ",\"choices\":[";
  text += choices;
  text += ']';
  if (shows_null_usage || !usage.is_null()) text += ",\"usage\":" + usage.dump();
  text += '}';
  return text;
}

std::string choice_text(const Json& head, std::string_view logprobs, const Json& finish) {
  std::string text = head.dump();
  text.pop_back();
  text += ",\"logprobs\":";
  text += logprobs.empty() ? "null" : logprobs;
  text += ",\"finish_reason\":" + finish.dump() + '}';
  return text;
}

Json usage_json(const Usage& usage) {
  Json details;
  details.set("cached_tokens", usage.cached_tokens);
  Json json;
  json.set("prompt_tokens", usage.prompt_tokens);
  json.set("completion_tokens", usage.completion_tokens);
  json.set("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.set("prompt_tokens_details", std::move(details));
  return json;
}

void WholeAnswer::end(const AnswerObject& object, const Json& usage, bool is_cut_off) {
  if (is_cut_off) return fail(cut_off_error());
  std::string choices;
  for (std::string& choice : choices_) {
    if (!choices.empty()) choices += ',';
    choices += std::exchange(choice, {});  // Not all of them twice.
  }
  exchange_->respond(text_response(200, "application/json", object.with(choices, usage)));
}

void StreamedAnswer::send(const AnswerObject& object, std::string_view choice) {
  events_.send(object.with(choice, {}, fields_.include_usage));
}

void StreamedAnswer::end(const AnswerObject& object, const Json& usage, bool is_cut_off) {
  if (is_cut_off) return fail(cut_off_error());
  if (fields_.include_usage) events_.send(object.with({}, usage));
  events_.end();
}

}  // namespace trtmc
