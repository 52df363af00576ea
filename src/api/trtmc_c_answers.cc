// Answers and conversations of the C interface.
#include <cmath>
#include <limits>
#include <optional>

#include "api/c_interface.h"

struct trtmc_chat {
  trtmc::Chat chat;
};
// With what the last delta and the last answer that were handed out point to.
struct trtmc_stream {
  trtmc::Stream stream;
  trtmc::Delta delta{};
  std::vector<trtmc_tool_call> delta_calls{};
  std::vector<trtmc_token_logprob> top{};
  std::vector<trtmc_tool_call> answer_calls{};
  std::vector<int32_t> answer_ids{};
};

using namespace trtmc::c;

namespace trtmc::c {
namespace {

std::optional<double> number(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}

trtmc_generation_options default_generation() {
  constexpr double kDefault = std::numeric_limits<double>::quiet_NaN();
  return {.size = sizeof(trtmc_generation_options),
          .temperature = kDefault,
          .top_p = kDefault,
          .min_p = kDefault,
          .repetition_penalty = kDefault,
          .presence_penalty = kDefault,
          .frequency_penalty = kDefault,
          .top_k = -1,
          .max_tokens = 0,
          .has_seed = 0,
          .logprobs = -1,
          .seed = 0,
          .stop = nullptr,
          .stop_count = 0,
          .logit_bias = nullptr,
          .logit_bias_count = 0};
}

GenerationOptions generation_options(const trtmc_generation_options* given) {
  const trtmc_generation_options read = read_options(given, default_generation());
  GenerationOptions options;
  options.temperature = number(read.temperature);
  options.top_p = number(read.top_p);
  options.min_p = number(read.min_p);
  options.repetition_penalty = number(read.repetition_penalty);
  options.presence_penalty = number(read.presence_penalty);
  options.frequency_penalty = number(read.frequency_penalty);
  if (read.top_k != -1) options.top_k = read.top_k;
  options.max_tokens = read.max_tokens;
  if (read.has_seed != 0) options.seed = read.seed;
  if (read.logprobs != -1) options.logprobs = read.logprobs;
  for (const char* const stop : require(read.stop, read.stop_count, "stop")) {
    options.stop.emplace_back(&require(stop, "stop"));
  }
  for (const auto& [token, bias] : require(read.logit_bias, read.logit_bias_count, "logit_bias")) {
    options.logit_bias.emplace_back(token, bias);
  }
  return options;
}

std::vector<trtmc_tool_call> c_calls(const std::vector<trtmc::ToolCall>& calls) {
  std::vector<trtmc_tool_call> result;
  result.reserve(calls.size());
  for (const trtmc::ToolCall& call : calls) {
    result.push_back({call.name.c_str(), call.arguments.c_str()});
  }
  return result;
}

template <typename T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

// The next delta, kept in the stream; false at the end.
bool advance(trtmc_stream& stream, trtmc_delta& out) {
  std::optional<Delta> next = stream.stream.next();
  if (!next) return false;
  const Delta& delta = stream.delta = std::move(*next);
  stream.delta_calls = c_calls(delta.tool_calls);
  stream.top.clear();
  trtmc_delta result = TRTMC_DELTA_INIT;
  result.content = delta.content.c_str();
  result.content_length = delta.content.size();
  result.reasoning = delta.reasoning.c_str();
  result.reasoning_length = delta.reasoning.size();
  result.tool_calls = data_or_null(stream.delta_calls);
  result.tool_call_count = stream.delta_calls.size();
  if (delta.token) {
    for (const auto& [token, logprob] : delta.token->top) stream.top.push_back({token, logprob});
    result.token = delta.token->id;
    result.logprob = delta.token->logprob;
    result.top = data_or_null(stream.top);
    result.top_count = stream.top.size();
  }
  write_struct(out, result);
  return true;
}

// Hands a stream that `make` makes to the caller.
template <typename Make>
trtmc_status open_stream(trtmc_stream** stream, trtmc_error** error, Make&& make) {
  return guarded(error, [&] {
    trtmc_stream*& out = require(stream, "stream");
    out = new trtmc_stream{std::forward<Make>(make)()};
  });
}

}  // namespace
}  // namespace trtmc::c

void trtmc_generation_options_init(trtmc_generation_options* options, size_t size) {
  if (options == nullptr) return;
  trtmc_generation_options defaults = default_generation();
  defaults.size = size;
  std::memcpy(options, &defaults, std::min(size, sizeof(defaults)));
}

trtmc_status trtmc_model_chat(const trtmc_model* model, const char* conversation_json,
                              const char* date, const trtmc_generation_options* options,
                              trtmc_stream** stream, trtmc_error** error) {
  return open_stream(stream, error, [&] {
    require(conversation_json, "conversation_json");
    return require(model, "model")
        .model.chat(conversation_json, generation_options(options), or_empty(date));
  });
}

trtmc_status trtmc_model_complete(const trtmc_model* model, const char* text, size_t length,
                                  const trtmc_generation_options* options, trtmc_stream** stream,
                                  trtmc_error** error) {
  return open_stream(stream, error, [&] {
    return require(model, "model")
        .model.complete(text_view(text, length), generation_options(options));
  });
}

trtmc_status trtmc_model_complete_ids(const trtmc_model* model, const int32_t* ids, size_t count,
                                      const trtmc_generation_options* options,
                                      trtmc_stream** stream, trtmc_error** error) {
  return open_stream(stream, error, [&] {
    return require(model, "model")
        .model.complete(token_ids(ids, count), generation_options(options));
  });
}

trtmc_status trtmc_stream_next(trtmc_stream* stream, trtmc_delta* delta, int* more,
                               trtmc_error** error) {
  return guarded(error, [&] {
    trtmc_delta& out = require_struct(delta, "delta");
    int& has_more = require(more, "more");
    has_more = advance(require(stream, "stream"), out) ? 1 : 0;
  });
}

trtmc_status trtmc_stream_read(trtmc_stream* stream, trtmc_delta_callback on_delta, void* user_data,
                               trtmc_error** error) {
  return guarded(error, [&] {
    trtmc_stream& source = require(stream, "stream");
    trtmc_delta delta = TRTMC_DELTA_INIT;
    bool cancelled = false;
    while (advance(source, delta)) {
      if (on_delta == nullptr || cancelled || on_delta(&delta, user_data) == 0) continue;
      cancelled = true;
      source.stream.cancel();
    }
  });
}

trtmc_status trtmc_stream_answer(trtmc_stream* stream, trtmc_answer* answer, trtmc_error** error) {
  return guarded(error, [&] {
    trtmc_stream& source = require(stream, "stream");
    trtmc_answer& out = require_struct(answer, "answer");
    const trtmc::Answer& whole = source.stream.answer();
    source.answer_calls = c_calls(whole.tool_calls);
    source.answer_ids.clear();
    for (const trtmc::Token& token : whole.tokens) source.answer_ids.push_back(token.id);
    write_struct(out, trtmc_answer{.size = 0,
                                   .content = whole.content.c_str(),
                                   .content_length = whole.content.size(),
                                   .reasoning = whole.reasoning.c_str(),
                                   .reasoning_length = whole.reasoning.size(),
                                   .tool_calls = data_or_null(source.answer_calls),
                                   .tool_call_count = source.answer_calls.size(),
                                   .ids = data_or_null(source.answer_ids),
                                   .id_count = source.answer_ids.size(),
                                   .finish_reason = trtmc::finish_reason(whole).data(),
                                   .prompt_tokens = whole.usage.prompt_tokens,
                                   .completion_tokens = whole.usage.completion_tokens,
                                   .cached_tokens = whole.usage.cached_tokens,
                                   .prefill_ms = whole.prefill_ms,
                                   .decode_ms = whole.decode_ms});
  });
}

void trtmc_stream_cancel(trtmc_stream* stream) {
  if (stream != nullptr) stream->stream.cancel();
}

void trtmc_stream_free(trtmc_stream* stream) { delete stream; }

trtmc_status trtmc_chat_new(const trtmc_model* model, const trtmc_chat_options* options,
                            trtmc_chat** chat, trtmc_error** error) {
  return guarded(error, [&] {
    trtmc_chat*& out = require(chat, "chat");
    const trtmc_chat_options read = read_options(options, TRTMC_CHAT_OPTIONS_INIT);
    require_zero(read.reserved);
    trtmc::ChatOptions converted;
    if (read.system != nullptr) converted.system = read.system;
    if (read.think != -1) converted.think = read.think != 0;
    converted.date = or_empty(read.date);
    converted.tools = or_empty(read.tools);
    out = new trtmc_chat{trtmc::Chat(require(model, "model").model, converted)};
  });
}

trtmc_status trtmc_chat_ask(trtmc_chat* chat, const char* text,
                            const trtmc_generation_options* options, trtmc_stream** stream,
                            trtmc_error** error) {
  return open_stream(stream, error, [&] {
    return require(chat, "chat").chat.ask(&require(text, "text"), generation_options(options));
  });
}

trtmc_status trtmc_chat_give_results(trtmc_chat* chat, const char* const* results, size_t count,
                                     const trtmc_generation_options* options, trtmc_stream** stream,
                                     trtmc_error** error) {
  return open_stream(stream, error, [&] {
    std::vector<std::string> texts;
    for (const char* const result : require(results, count, "results")) {
      texts.emplace_back(&require(result, "results"));
    }
    return require(chat, "chat").chat.give_results(texts, generation_options(options));
  });
}

trtmc_status trtmc_chat_history(const trtmc_chat* chat, char** json, trtmc_error** error) {
  return guarded(error, [&] {
    char*& out = require(json, "json");
    out = copy_out(require(chat, "chat").chat.history());
  });
}

trtmc_status trtmc_chat_set_history(trtmc_chat* chat, const char* json, trtmc_error** error) {
  return guarded(error, [&] { require(chat, "chat").chat.set_history(&require(json, "json")); });
}

void trtmc_chat_free(trtmc_chat* chat) { delete chat; }
