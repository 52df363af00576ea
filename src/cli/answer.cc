#include "cli/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>

#include "base/clock.h"
#include "base/log.h"
#include "cli/interrupts.h"

namespace trtmc {
namespace {

void append(Answer& answer, const OutputDelta& delta) {
  answer.content += delta.content;
  answer.reasoning += delta.reasoning;
  answer.tool_calls.insert(answer.tool_calls.end(), delta.tool_calls.begin(),
                           delta.tool_calls.end());
}

bool is_empty(const OutputDelta& delta) {
  return delta.content.empty() && delta.reasoning.empty() && delta.tool_calls.empty();
}

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Takes the option's value if there is one, and says where the value comes from.
template <typename T>
std::string resolve(std::string_view name, T& value, const std::optional<T>& option, T built_in) {
  const std::string_view source = option ? "request" : value != built_in ? "bundle" : "default";
  if (option) value = *option;
  return fmt::format("{} {} ({})", name, value, source);
}

SamplingParams resolve_sampling(const Manifest& manifest, const SamplingOptions& options) {
  SamplingParams params = manifest.default_sampling;
  const SamplingParams built_in;
  const std::string texts[] = {
      resolve("temperature", params.temperature, options.temperature, built_in.temperature),
      resolve("top-k", params.top_k, options.top_k, built_in.top_k),
      resolve("top-p", params.top_p, options.top_p, built_in.top_p),
      resolve("min-p", params.min_p, options.min_p, built_in.min_p),
      resolve("repetition penalty", params.repetition_penalty, options.repetition_penalty,
              built_in.repetition_penalty),
      resolve("presence penalty", params.presence_penalty, options.presence_penalty,
              built_in.presence_penalty),
      resolve("frequency penalty", params.frequency_penalty, options.frequency_penalty,
              built_in.frequency_penalty)};
  params.logit_bias = options.logit_bias;
  params.seed = options.seed ? *options.seed : random_seed();
  validate(params);
  log_debug("sampling: {}, seed {} ({})", fmt::join(texts, ", "), params.seed,
            options.seed ? "request" : "random");
  return params;
}

}  // namespace

Answer generate(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser,
                const ShowDelta& show) {
  Answer answer;
  const auto start = std::chrono::steady_clock::now();
  auto first = start, last = start;
  const auto take = [&](const OutputDelta& delta) {
    if (is_empty(delta)) return;
    append(answer, delta);
    show(delta);
  };
  TokenStream stream = engine.submit(std::move(request));
  const InterruptScope interrupt([&] { stream.cancel(); });
  while (std::optional<TokenEvent> event = stream.next()) {
    if (event->finish) answer.finish = *event->finish;
    if (event->finish == FinishReason::kError) throw Error(event->error_code, event->error);
    take(parser ? parser->append(event->text) : OutputDelta{"", event->text, {}});
    if (event->token < 0) continue;
    last = std::chrono::steady_clock::now();
    if (answer.tokens.empty()) first = last;
    answer.tokens.push_back(std::move(*event));
  }
  if (parser) take(parser->finish());
  answer.usage = stream.usage();
  answer.prefill_ms = milliseconds_between(start, first);
  answer.decode_ms = milliseconds_between(first, last);
  return answer;
}

GenerationRequest make_request(const Manifest& manifest, const SamplingOptions& options,
                               std::vector<TokenId> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = resolve_sampling(manifest, options);
  request.max_tokens = options.max_tokens;
  request.stop_ids = manifest.stop_ids;
  request.stop = options.stop;
  return request;
}

void AnswerPrinter::show(const OutputDelta& delta) {
  if (!delta.reasoning.empty() && !console_.quiet()) {
    console_.dim(delta.reasoning);
    in_reasoning_ = true;
  }
  if (delta.content.empty() && delta.tool_calls.empty()) return;
  if (in_reasoning_) console_.note("\n");
  in_reasoning_ = false;
  if (!delta.content.empty()) {
    console_.print(delta.content);
    at_line_start_ = delta.content.ends_with('\n');
  }
  for (const ToolCall& call : delta.tool_calls) {
    if (!at_line_start_) console_.print("\n");
    console_.print_json(to_json(call));
    at_line_start_ = true;
  }
}

void AnswerPrinter::finish() {
  if (in_reasoning_) console_.note("\n");
  if (!at_line_start_) console_.print("\n");
}

Json to_json(const ToolCall& call) {
  Json json;
  json.set("name", call.name);
  try {
    json.set("arguments", Json::parse(call.arguments));
  } catch (const Error&) {  // A string of the model's, and no JSON within.
    json.set("arguments", call.arguments);
  }
  return json;
}

}  // namespace trtmc
