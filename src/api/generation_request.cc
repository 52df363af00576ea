#include "api/generation_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>
#include <utility>

#include "base/log.h"

namespace trtmc {
namespace {

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

SamplingParams resolve_sampling(const Manifest& manifest, const GenerationOptions& options) {
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

GenerationRequest make_request(const Manifest& manifest, const GenerationOptions& options,
                               std::vector<TokenId> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = resolve_sampling(manifest, options);
  request.max_tokens = options.max_tokens;
  request.stop_ids = manifest.stop_ids;
  request.stop = options.stop;
  request.logprobs = options.logprobs;
  return request;
}

}  // namespace trtmc
