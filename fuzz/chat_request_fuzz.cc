// Any JSON as the body of a chat or of a completion (the first byte says which), of a model with
// the embedded one's template and tokenizer. It is refused with a status that blames the client, or
// becomes a prompt in UTF-8 and a request that the engine's own checks have nothing against.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "fuzz/fuzz_input.h"
#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "text/tokenizer_json.h"

namespace {

using trtmc::GenerationRequest;
using trtmc::JsonCursor;
using trtmc::TokenId;

constexpr int kVocabulary = 10240;

const trtmc::Manifest& manifest() {
  static const trtmc::Manifest instance = [] {
    trtmc::Manifest made;
    made.spec.vocab_size = kVocabulary;
    made.markers = {"<think>", "</think>", "<tool_call>", "</tool_call>"};
    return made;
  }();
  return instance;
}

const trtmc::Tokenizer& tokenizer() {
  static const trtmc::Tokenizer loaded(
      trtmc::compile_tokenizer(trtmc::source_file("models/smollm3-tiny/tokenizer.json")));
  return loaded;
}

const trtmc::ChatTemplate& chat_template() {
  static const trtmc::ChatTemplate loaded(
      trtmc::source_file("models/smollm3-tiny/chat_template.jinja"));
  return loaded;
}

void check_ids(std::span<const TokenId> ids) {
  for (const TokenId id : ids) TRTMC_CHECK(id >= 0 && id < kVocabulary, "an id of no token");
}

void check_request(const trtmc::SamplingFields& fields) {
  const GenerationRequest request = trtmc::make_request(manifest(), fields, {});
  validate(request.sampling);
  check_ids(request.stop_ids);
  for (const auto& [id, bias] : request.sampling.logit_bias) check_ids(std::span(&id, 1));
  TRTMC_CHECK(request.n >= 1 && request.n <= 128, "a number of answers out of its range");
  TRTMC_CHECK(request.max_tokens >= 0, "a negative number of tokens");
  TRTMC_CHECK(request.logprobs.value_or(0) <= 20, "too many alternatives");
  for (const std::string& stop : request.stop) {
    TRTMC_CHECK(!stop.empty() && !trtmc::find_invalid_utf8(stop), "a stop string that is no text");
  }
}

void chat(const JsonCursor& body) {
  trtmc::ChatRequest request = trtmc::read_chat_request(body, manifest());
  check_request(request.sampling);
  const std::string prompt =
      trtmc::render_with_system_messages(chat_template(), std::move(request.input));
  TRTMC_CHECK(!trtmc::find_invalid_utf8(prompt), "a prompt that is not UTF-8");
}

void complete(const JsonCursor& body) {
  const trtmc::CompletionRequest request = trtmc::read_completion_request(
      body, {.executor = nullptr, .tokenizer = &tokenizer(), .vocab_size = kVocabulary});
  check_request(request.sampling);
  TRTMC_CHECK(!request.prompts.empty(), "no prompt");
  for (const trtmc::CompletionPrompt& prompt : request.prompts) {
    TRTMC_CHECK(!prompt.ids.empty(), "a prompt without tokens");
    TRTMC_CHECK(!trtmc::find_invalid_utf8(prompt.text), "a prompt that is not UTF-8");
    check_ids(prompt.ids);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trtmc::FuzzInput input(data, size);
  const bool is_chat = input.chance();
  try {
    const trtmc::Json json = trtmc::parse_body(input.rest());
    is_chat ? chat(JsonCursor(json)) : complete(JsonCursor(json));
  } catch (const trtmc::Error& error) {
    const trtmc::ApiError told = trtmc::api_error(error);
    TRTMC_CHECK(told.status == 400, "the server is blamed for a request");
    TRTMC_CHECK(trtmc::Json::parse(to_json(told).dump()).find("error"), "an error that is no JSON");
  }
  return 0;
}
