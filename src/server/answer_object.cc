#include "server/answer_object.h"

#include <fmt/format.h>

#include <ctime>
#include <random>
#include <span>
#include <utility>

#include "base/hash.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

// Names what the numbers of an answer depend on besides the request: with equal fingerprints, equal
// seeds give equal answers.
std::string fingerprint(const ServedModel& model) {
  const std::string text =
      fmt::format("{} {} {}", TRTMC_VERSION_STRING, to_hex(model.loaded.bundle().identity()),
                  model.loaded.executor().description());
  return fmt::format("fp_{:010x}", hash64(std::as_bytes(std::span(text))) >> 24);
}

}  // namespace

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
  head.set("system_fingerprint", fingerprint(model));
  head_ = head.dump();
  head_.pop_back();
}

std::string AnswerObject::with(Json::Array choices, const Json& usage,
                               bool shows_null_usage) const {
  std::string text = head_;
  text += ",\"choices\":";
  text += Json(std::move(choices)).dump();
  if (shows_null_usage || !usage.is_null()) text += ",\"usage\":" + usage.dump();
  text += '}';
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

ApiError cut_off_error() {
  return {.status = 503,
          .message = "the answer was cut off, since the server stops",
          .type = "server_error"};
}

}  // namespace trtmc
