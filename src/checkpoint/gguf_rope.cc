#include "checkpoint/gguf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/error.h"

namespace trtmc {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 28;
constexpr double kDefaultTheta = 10'000;  // llama.cpp's, where a file gives none.
constexpr double kLowFreqFactor = 1, kHighFreqFactor = 4;
// The converter computes the factors in float32 from float32 frequencies.
constexpr double kFactorTolerance = 1e-4;

// What Llama 3's scaling divides the frequency by (Transformers' _compute_llama3_parameters).
double llama3_divisor(double frequency, double factor, double original_context) {
  const double waves_in_context = original_context * frequency / (2 * std::numbers::pi);
  const double keep = std::clamp(
      (waves_in_context - kLowFreqFactor) / (kHighFreqFactor - kLowFreqFactor), 0.0, 1.0);
  return 1 / ((1 - keep) / factor + keep);
}

bool are_factors_of(std::span<const float> factors, double theta, double factor,
                    double original_context) {
  const auto pairs = static_cast<double>(factors.size());
  for (size_t i = 0; i < factors.size(); ++i) {
    const double frequency = 1 / std::pow(theta, static_cast<double>(i) / pairs);
    const double expected = llama3_divisor(frequency, factor, original_context);
    if (!(std::abs(static_cast<double>(factors[i]) - expected) <= kFactorTolerance * expected))
      return false;
  }
  return true;
}

// Nothing where no frequency changes.
std::optional<Json> llama3_scaling(std::span<const float> factors, double theta) {
  if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; }))
    return std::nullopt;
  // The lowest frequency is the last; where it is not slowed down wholly, there is no telling.
  const double factor = factors.back();
  for (int64_t context = 32; context <= kMaxContext; context *= 2) {
    if (!are_factors_of(factors, theta, factor, static_cast<double>(context))) continue;
    Json scaling;
    scaling.set("rope_type", "llama3");
    scaling.set("factor", factor);
    scaling.set("low_freq_factor", kLowFreqFactor);
    scaling.set("high_freq_factor", kHighFreqFactor);
    scaling.set("original_max_position_embeddings", context);
    return scaling;
  }
  throw Error(ErrorCode::kUnsupported,
              "tensor \"rope_freqs.weight\" holds factors that no known scaling of Llama 3 gives");
}

// A member that is given only if the key is there.
void set_number(Json& json, std::string_view member, const GgufMetadata& metadata,
                const std::string& key) {
  if (const auto number = metadata.find_number(key)) json.set(member, *number);
}

Json keyed_scaling(const GgufMetadata& metadata, const std::string& prefix) {
  const std::string scaling = prefix + "rope.scaling.";
  const std::string_view type = metadata.find_text(scaling + "type").value_or("none");
  Json parameters;
  if (type == "none") {
    parameters.set("rope_type", "default");
    return parameters;
  }
  parameters.set("rope_type", type);
  set_number(parameters, "factor", metadata, scaling + "factor");
  if (const auto original =
          metadata.find_integer(scaling + "original_context_length", 1, kMaxContext)) {
    parameters.set("original_max_position_embeddings", *original);
  }
  set_number(parameters, "attention_factor", metadata, scaling + "yarn_attn_factor");
  set_number(parameters, "attention_factor", metadata, scaling + "attn_factor");
  set_number(parameters, "beta_fast", metadata, scaling + "yarn_beta_fast");
  set_number(parameters, "beta_slow", metadata, scaling + "yarn_beta_slow");
  if (metadata.find_number(scaling + "yarn_ext_factor").value_or(1) != 1) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("key \"{}yarn_ext_factor\" is not supported, expected 1", scaling));
  }
  return parameters;
}

void refuse_linear_scale(const GgufMetadata& metadata, const std::string& prefix) {
  const std::string key = prefix + "rope.scale_linear";
  if (metadata.find_number(key).value_or(1) == 1) return;
  throw Error(ErrorCode::kUnsupported, fmt::format("key \"{}\" is not supported, expected 1", key));
}

}  // namespace

Json gguf_rope_parameters(const GgufMetadata& metadata, const std::string& prefix, int64_t head_dim,
                          std::span<const float> factors) {
  refuse_linear_scale(metadata, prefix);
  const double theta = metadata.find_number(prefix + "rope.freq_base").value_or(kDefaultTheta);
  Json parameters = keyed_scaling(metadata, prefix);
  if (!factors.empty()) {
    if (static_cast<int64_t>(factors.size()) * 2 != head_dim) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("tensor \"rope_freqs.weight\" has {} factors, expected {} for heads "
                              "of {}",
                              factors.size(), head_dim / 2, head_dim));
    }
    if (auto llama3 = llama3_scaling(factors, theta)) {
      if (*parameters.find("rope_type") != Json("default")) {
        throw Error(ErrorCode::kUnsupported,
                    "both rope_freqs.weight and rope.scaling.type scale the rotary positions");
      }
      parameters = *std::move(llama3);
    }
  }
  parameters.set("rope_theta", theta);
  if (const auto rotating =
          metadata.find_integer(prefix + "rope.dimension_count", 1, kMaxContext)) {
    parameters.set("partial_rotary_factor",
                   static_cast<double>(*rotating) / static_cast<double>(head_dim));
  }
  return parameters;
}

}  // namespace trtmc
