#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace trtmc {
namespace {

// The dimension that turns `rotations` times over `context` positions.
double correction_dim(double rotations, double dim, double theta, double context) {
  return dim * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

// Low dimensions turn fast and keep their frequency, high ones are slowed down by the factor,
// and those between are blended.
void scale(const YarnScaling& yarn, const RopeSpec& rope, RopeTable& table) {
  const double dim = rope.rotary_dim;
  const double context = yarn.original_context;
  double low = correction_dim(yarn.beta_fast, dim, rope.theta, context);
  double high = correction_dim(yarn.beta_slow, dim, rope.theta, context);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < table.inverse_frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    double& frequency = table.inverse_frequencies[i];
    frequency = frequency / yarn.factor * ramp + frequency * (1 - ramp);
  }
  table.attention_factor = yarn.attention_factor;
}

// The same idea by wavelength: short waves stay, long ones are stretched by the factor, with a
// linear blend in between (Transformers' _compute_llama3_parameters).
void scale(const Llama3Scaling& llama3, const RopeSpec&, RopeTable& table) {
  const double context = llama3.original_context;
  for (double& frequency : table.inverse_frequencies) {
    const double waves_in_context = context * frequency / (2 * std::numbers::pi);
    const double keep = std::clamp((waves_in_context - llama3.low_freq_factor) /
                                       (llama3.high_freq_factor - llama3.low_freq_factor),
                                   0.0, 1.0);
    frequency = (1 - keep) * frequency / llama3.factor + keep * frequency;
  }
}

void scale(std::monostate, const RopeSpec&, RopeTable&) {}

double mscale_of(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

}  // namespace

RopeTable make_rope_table(const RopeSpec& rope) {
  RopeTable table{{}, 1.0};
  table.inverse_frequencies.resize(static_cast<size_t>(rope.rotary_dim / 2));
  for (size_t i = 0; i < table.inverse_frequencies.size(); ++i) {
    table.inverse_frequencies[i] =
        1.0 / std::pow(rope.theta, 2.0 * static_cast<double>(i) / rope.rotary_dim);
  }
  std::visit([&](const auto& scaling) { scale(scaling, rope, table); }, rope.scaling);
  return table;
}

void rope_cos_sin(const RopeTable& table, int64_t position, std::span<float> cos,
                  std::span<float> sin) {
  const size_t pairs = table.inverse_frequencies.size();
  TRTMC_CHECK(cos.size() == pairs && sin.size() == pairs, "cos and sin hold one value a pair");
  for (size_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(position) * table.inverse_frequencies[i];
    cos[i] = static_cast<float>(std::cos(angle) * table.attention_factor);
    sin[i] = static_cast<float>(std::sin(angle) * table.attention_factor);
  }
}

double yarn_attention_factor(double factor, double mscale, double mscale_all_dim) {
  if (mscale != 0 && mscale_all_dim != 0)
    return mscale_of(factor, mscale) / mscale_of(factor, mscale_all_dim);
  return mscale_of(factor, 1);
}

}  // namespace trtmc
