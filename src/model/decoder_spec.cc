#include "model/decoder_spec.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace trtmc {
namespace {

// Far above any model there is, and small enough that the product of any three sizes fits int64.
constexpr int kMaxWidth = 1 << 20;
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxLayers = 1 << 12;
constexpr int kMaxHeadDim = 1 << 12;
constexpr int kMaxContext = 1 << 28;
constexpr double kMaxFactor = 1 << 20;

[[noreturn]] void refuse(std::string_view field, std::string_view value,
                         std::string_view expected) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is {}, expected {}", field, value, expected));
}

void check_int(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high)
    refuse(field, fmt::to_string(value), fmt::format("{} to {}", low, high));
}

// A NaN is out of every range.
void check_real(std::string_view field, double value, double low, double high) {
  if (!(value >= low && value <= high))
    refuse(field, fmt::to_string(value), fmt::format("{} to {}", low, high));
}

void check_positive(std::string_view field, double value) {
  if (!(value > 0 && std::isfinite(value)))
    refuse(field, fmt::to_string(value), "a positive number");
}

void validate_scaling(const YarnScaling& yarn) {
  check_real("the YaRN factor", yarn.factor, 1, kMaxFactor);
  check_positive("beta_fast", yarn.beta_fast);
  check_positive("beta_slow", yarn.beta_slow);
  if (yarn.beta_fast < yarn.beta_slow) {
    refuse("beta_fast", fmt::to_string(yarn.beta_fast),
           fmt::format("at least beta_slow, which is {}", yarn.beta_slow));
  }
  check_positive("attention_factor", yarn.attention_factor);
  check_real("attention_factor", yarn.attention_factor, 0, kMaxFactor);
  check_int("the original context", yarn.original_context, 1, kMaxContext);
}

void validate_scaling(const Llama3Scaling& llama3) {
  check_real("the llama3 factor", llama3.factor, 1, kMaxFactor);
  check_positive("low_freq_factor", llama3.low_freq_factor);
  check_positive("high_freq_factor", llama3.high_freq_factor);
  if (llama3.high_freq_factor <= llama3.low_freq_factor) {
    refuse("high_freq_factor", fmt::to_string(llama3.high_freq_factor),
           fmt::format("more than low_freq_factor, which is {}", llama3.low_freq_factor));
  }
  check_int("the original context", llama3.original_context, 1, kMaxContext);
}

void validate_scaling(std::monostate) {}

void validate_rope(const RopeSpec& rope, int head_dim) {
  // From 1 downwards the frequencies no longer fall, and YaRN divides by the logarithm.
  if (!(rope.theta > 1 && std::isfinite(rope.theta)))
    refuse("the rope theta", fmt::to_string(rope.theta), "more than 1");
  check_int("the rotary dimension", rope.rotary_dim, 2, head_dim);
  if (rope.rotary_dim % 2 != 0)
    refuse("the rotary dimension", fmt::to_string(rope.rotary_dim), "an even number");
  std::visit([](const auto& scaling) { validate_scaling(scaling); }, rope.scaling);
}

}  // namespace

void validate(const DecoderSpec& spec) {
  check_int("the vocabulary size", spec.vocab_size, 1, kMaxVocabulary);
  check_int("the hidden size", spec.hidden_size, 1, kMaxWidth);
  check_int("the intermediate size", spec.intermediate_size, 1, kMaxWidth);
  check_int("the head dimension", spec.head_dim, 1, kMaxHeadDim);
  check_int("the number of heads", spec.num_heads, 1, kMaxWidth / spec.head_dim);
  check_int("the number of KV heads", spec.num_kv_heads, 1, spec.num_heads);
  if (spec.num_heads % spec.num_kv_heads != 0) {
    refuse("the number of KV heads", fmt::to_string(spec.num_kv_heads),
           fmt::format("a divisor of the number of heads, {}", spec.num_heads));
  }
  check_int("the context length", spec.context_length, 1, kMaxContext);
  if (!(spec.rms_norm_eps > 0 && spec.rms_norm_eps < 1))
    refuse("the RMS norm epsilon", fmt::to_string(spec.rms_norm_eps), "between 0 and 1");
  validate_rope(spec.rope, spec.head_dim);
  check_int("the number of layers", static_cast<int64_t>(spec.layers.size()), 1, kMaxLayers);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    check_int(fmt::format("the sliding window of layer {}", i), spec.layers[i].sliding_window, 0,
              kMaxContext);
  }
}

}  // namespace trtmc
