#include "api/c_interface.h"
#include "base/json.h"

using namespace trtmc::c;

namespace trtmc::c {

// Of the exception that is being handled.
trtmc_status report(trtmc_error** error) noexcept {
  try {
    const Error caught = trtmc::current_error();
    if (error != nullptr) *error = new trtmc_error{caught};
    return static_cast<trtmc_status>(trtmc::exit_status(caught.code()));
  } catch (...) {  // There is no memory even to say so.
    if (error != nullptr) *error = nullptr;
    return TRTMC_EXHAUSTED;
  }
}

void require_size(size_t size, const char* name) {
  if (size >= sizeof(size_t) && size % sizeof(size_t) == 0) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      std::string(name) + ": its size is " + std::to_string(size) + ", which no header sets",
      "begin with the TRTMC_…_INIT macro");
}

namespace {

Json info_json(const trtmc::ModelInfo& info) {
  Json json;
  json.set("family", info.family);
  json.set("source", info.source);
  json.set("source_revision", info.source_revision);
  json.set("licence", info.licence);
  json.set("vocab_size", info.vocab_size);
  json.set("context_length", info.context_length);
  json.set("stop_ids", Json::Array(info.stop_ids.begin(), info.stop_ids.end()));
  json.set("has_tokenizer", info.has_tokenizer);
  json.set("has_chat_template", info.has_chat_template);
  json.set("has_reasoning", info.has_reasoning);
  json.set("has_tools", info.has_tools);
  json.set("device", info.device);
  return json;
}

}  // namespace
}  // namespace trtmc::c

const char* trtmc_version(void) { return TRTMC_VERSION_STRING; }
int trtmc_c_abi(void) { return TRTMC_C_ABI; }

trtmc_status trtmc_error_status(const trtmc_error* error) {
  return error == nullptr ? TRTMC_OK
                          : static_cast<trtmc_status>(trtmc::exit_status(error->error.code()));
}
const char* trtmc_error_message(const trtmc_error* error) {
  return error == nullptr ? "" : error->error.what();
}
const char* trtmc_error_hint(const trtmc_error* error) {
  return error == nullptr ? "" : error->error.hint().c_str();
}
void trtmc_error_free(trtmc_error* error) { delete error; }

void trtmc_free(void* memory) { std::free(memory); }

trtmc_status trtmc_set_log(int lowest, trtmc_log_sink sink, void* user_data, trtmc_error** error) {
  return guarded(error, [&] {
    if (lowest < TRTMC_LOG_DEBUG || lowest > TRTMC_LOG_ERROR) {
      throw trtmc::Error(trtmc::ErrorCode::kInvalidArgument, "lowest: no level of messages");
    }
    const auto level = static_cast<trtmc::LogLevel>(lowest);
    if (sink == nullptr) return trtmc::set_log(level);
    trtmc::set_log(level, [sink, user_data](trtmc::LogLevel of_line, std::string_view line) {
      sink(static_cast<trtmc_log_level>(of_line), std::string(line).c_str(), user_data);
    });
  });
}

trtmc_status trtmc_model_load(const char* path, const trtmc_model_options* options,
                              trtmc_model** model, trtmc_error** error) {
  return guarded(error, [&] {
    require(path, "path");
    trtmc_model*& out = require(model, "model");
    const trtmc_model_options read = read_options(options, TRTMC_MODEL_OPTIONS_INIT);
    require_zero(read.reserved);
    out = new trtmc_model{
        trtmc::Model(path, {.backend = read.backend == nullptr ? "auto" : read.backend,
                            .threads = read.threads,
                            .context_length = read.context_length,
                            .kv_memory_bytes = read.kv_memory_bytes,
                            .kv_type = read.kv_type == nullptr ? "f32" : read.kv_type,
                            .cpu_isa = or_empty(read.cpu_isa),
                            .threads_batch = read.threads_batch})};
  });
}

void trtmc_model_free(trtmc_model* model) { delete model; }

trtmc_status trtmc_model_info(const trtmc_model* model, char** json, trtmc_error** error) {
  return guarded(error, [&] {
    const trtmc::ModelInfo info = require(model, "model").model.info();
    require(json, "json") = copy_out(info_json(info).dump());
  });
}

trtmc_status trtmc_tokenize(const trtmc_model* model, const char* text, size_t length,
                            uint32_t flags, int32_t** ids, size_t* count, trtmc_error** error) {
  return guarded(error, [&] {
    int32_t*& out = require(ids, "ids");
    size_t& size = require(count, "count");
    const std::vector<int32_t> result =
        require(model, "model")
            .model.tokenize(text_view(text, length), {(flags & TRTMC_TOKENIZE_ADD_SPECIAL) != 0,
                                                      (flags & TRTMC_TOKENIZE_PLAIN_TEXT) != 0});
    out = copy_out(std::span(result));
    size = result.size();
  });
}

trtmc_status trtmc_detokenize(const trtmc_model* model, const int32_t* ids, size_t count,
                              uint32_t flags, char** text, size_t* length, trtmc_error** error) {
  return guarded(error, [&] {
    char*& out = require(text, "text");
    size_t& size = require(length, "length");
    const std::string result =
        require(model, "model")
            .model.detokenize(token_ids(ids, count), (flags & TRTMC_DETOKENIZE_SKIP_SPECIAL) != 0);
    out = copy_out(result);
    size = result.size();
  });
}

trtmc_status trtmc_render(const trtmc_model* model, const char* conversation_json, const char* date,
                          char** prompt, size_t* length, trtmc_error** error) {
  return guarded(error, [&] {
    char*& out = require(prompt, "prompt");
    size_t& size = require(length, "length");
    require(conversation_json, "conversation_json");
    const std::string result =
        require(model, "model").model.render(conversation_json, or_empty(date));
    out = copy_out(result);
    size = result.size();
  });
}

trtmc_status trtmc_score(const trtmc_model* model, const int32_t* ids, size_t count, int32_t window,
                         double* token_logprobs, double* logprob_sum, double* perplexity,
                         trtmc_error** error) {
  return guarded(error, [&] {
    const trtmc::Score score = require(model, "model").model.score(token_ids(ids, count), window);
    if (token_logprobs != nullptr) std::ranges::copy(score.token_logprobs, token_logprobs);
    if (logprob_sum != nullptr) *logprob_sum = score.logprob_sum;
    if (perplexity != nullptr) *perplexity = score.perplexity;
  });
}
