#include "families/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "model/rope_table.h"

namespace trtmc {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 28;

// What both objects and the top level may give.
constexpr std::string_view kCommonKeys[] = {"rope_type", "type", "rope_theta",
                                            "partial_rotary_factor"};

struct Surroundings {
  const JsonCursor& config;
  int head_dim;
  int context_length;
  double default_theta;
};

// A number that counts only if it is there and not 0, as Python's `or` has it.
std::optional<double> truthy_number(const JsonCursor& object, std::string_view key) {
  const auto member = object.find_set(key);
  if (!member || member->number() == 0) return std::nullopt;
  return member->number();
}

// The member `key` of the config itself or of a settings object; both may give it if they agree.
std::optional<JsonCursor> find_in_either(const JsonCursor& config,
                                         const std::optional<JsonCursor>& settings,
                                         std::string_view key) {
  const auto outer = config.find_set(key);
  const auto inner = settings ? settings->find_set(key) : std::nullopt;
  if (outer && inner && outer->number() != inner->number()) {
    inner->fail(fmt::format("{}, but the configuration's own {} is {}", inner->number(), key,
                            outer->number()));
  }
  return inner ? inner : outer;
}

std::string read_rope_type(const JsonCursor& settings) {
  const auto type = settings.find_set("rope_type");
  const auto legacy = settings.find_set("type");
  if (type && legacy && type->string() != legacy->string()) {
    type->fail(fmt::format("\"{}\", but type is \"{}\"", type->string(), legacy->string()));
  }
  if (type) return type->string();
  if (legacy) return legacy->string();
  for (const auto& [key, value] : settings.members()) {
    if (std::find(std::begin(kCommonKeys), std::end(kCommonKeys), key) == std::end(kCommonKeys))
      settings.fail(fmt::format("\"{}\" is given, but no rope_type", key));
  }
  return "default";
}

void warn_of_unused_keys(const JsonCursor& settings, std::string_view type,
                         std::vector<std::string_view> used) {
  used.insert(used.end(), std::begin(kCommonKeys), std::end(kCommonKeys));
  for (const auto& [key, value] : settings.members()) {
    if (std::find(used.begin(), used.end(), key) == used.end())
      log_warning("{}: has no meaning for rope type {} and is ignored", value.path(), type);
  }
}

// original_max_position_embeddings, which configs also write beside the settings.
std::optional<int> read_original_context(const Surroundings& around, const JsonCursor& settings) {
  const auto original = find_in_either(around.config, settings, "original_max_position_embeddings");
  if (!original) return std::nullopt;
  return static_cast<int>(original->integer_in(1, kMaxContext));
}

YarnScaling read_yarn(const Surroundings& around, const JsonCursor& settings) {
  warn_of_unused_keys(settings, "yarn",
                      {"factor", "original_max_position_embeddings", "attention_factor",
                       "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"});
  const std::optional<int> original = read_original_context(around, settings);
  YarnScaling yarn{};
  yarn.original_context = original.value_or(around.context_length);
  const double ratio = static_cast<double>(around.context_length) / yarn.original_context;
  const auto factor = settings.find_set("factor");
  yarn.factor = factor ? factor->number() : ratio;
  if (original && yarn.factor != ratio) {
    log_warning(
        "{}.factor is {}, but max_position_embeddings / original_max_position_embeddings is {}; "
        "the factor counts, as in Transformers 5",
        settings.path(), yarn.factor, ratio);
  }
  yarn.beta_fast = truthy_number(settings, "beta_fast").value_or(32);
  yarn.beta_slow = truthy_number(settings, "beta_slow").value_or(1);
  const double mscale = truthy_number(settings, "mscale").value_or(0);
  const double mscale_all_dim = truthy_number(settings, "mscale_all_dim").value_or(0);
  const auto attention_factor = settings.find_set("attention_factor");
  yarn.attention_factor = attention_factor
                              ? attention_factor->number()
                              : yarn_attention_factor(yarn.factor, mscale, mscale_all_dim);
  // A null is no default but Python's false.
  const auto truncate = settings.find("truncate");
  yarn.truncate = !truncate || (!truncate->is_null() && truncate->boolean());
  return yarn;
}

Llama3Scaling read_llama3(const Surroundings& around, const JsonCursor& settings) {
  warn_of_unused_keys(
      settings, "llama3",
      {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"});
  return {
      .factor = settings.at("factor").number(),
      .low_freq_factor = settings.at("low_freq_factor").number(),
      .high_freq_factor = settings.at("high_freq_factor").number(),
      .original_context = read_original_context(around, settings).value_or(around.context_length)};
}

void refuse_settings_per_layer_type(const JsonCursor& settings) {
  for (const auto& [key, value] : settings.members()) {
    if (value.json().object() == nullptr) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: rotary settings of its own for a layer type, expected one setting "
                            "for all layers",
                            value.path()));
  }
}

void check_partial_rotation(const Surroundings& around, const std::optional<JsonCursor>& settings) {
  const auto partial = find_in_either(around.config, settings, "partial_rotary_factor");
  if (partial && partial->number() != 1) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: {}, expected 1, since every dimension of "
                                                     "a head rotates in this family",
                                                     partial->path(), partial->number()));
  }
}

RopeSpec read_settings(const Surroundings& around, const std::optional<JsonCursor>& settings) {
  if (settings) refuse_settings_per_layer_type(*settings);
  check_partial_rotation(around, settings);
  RopeSpec rope{.theta = around.default_theta, .rotary_dim = around.head_dim, .scaling = {}};
  if (const auto theta = find_in_either(around.config, settings, "rope_theta")) {
    rope.theta = theta->number();
  } else {
    log_warning("rope_theta is missing; it is taken as {}, as Transformers does",
                around.default_theta);
  }
  if (!settings) return rope;
  const std::string type = read_rope_type(*settings);
  if (type == "yarn") {
    rope.scaling = read_yarn(around, *settings);
  } else if (type == "llama3") {
    rope.scaling = read_llama3(around, *settings);
  } else if (type == "default") {
    warn_of_unused_keys(*settings, type, {});
  } else {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: rope type \"{}\" is not supported, expected default, yarn or "
                            "llama3",
                            settings->path(), type));
  }
  return rope;
}

Json scaling_json(std::monostate /*none*/) { return {}; }

Json scaling_json(const YarnScaling& yarn) {
  Json json;
  json.set("rope_type", "yarn");
  json.set("factor", yarn.factor);
  json.set("original_max_position_embeddings", yarn.original_context);
  json.set("attention_factor", yarn.attention_factor);
  json.set("beta_fast", yarn.beta_fast);
  json.set("beta_slow", yarn.beta_slow);
  json.set("truncate", yarn.truncate);
  return json;
}

Json scaling_json(const Llama3Scaling& llama3) {
  Json json;
  json.set("rope_type", "llama3");
  json.set("factor", llama3.factor);
  json.set("original_max_position_embeddings", llama3.original_context);
  json.set("low_freq_factor", llama3.low_freq_factor);
  json.set("high_freq_factor", llama3.high_freq_factor);
  return json;
}

// The settings object `key`, or nothing if it is missing, null or empty.
std::optional<JsonCursor> find_settings(const JsonCursor& config, std::string_view key) {
  auto settings = config.find_set(key);
  if (settings && settings->members().empty()) settings.reset();
  return settings;
}

}  // namespace

RopeSpec read_rope(const JsonCursor& config, int head_dim, int context_length,
                   double default_theta) {
  const Surroundings around{config, head_dim, context_length, default_theta};
  const auto scaling = find_settings(config, "rope_scaling");
  const auto parameters = find_settings(config, "rope_parameters");
  if (!scaling || !parameters) return read_settings(around, scaling ? scaling : parameters);
  const RopeSpec rope = read_settings(around, scaling);
  if (!(rope == read_settings(around, parameters)))
    scaling->fail("contradicts rope_parameters; one of the two must go");
  return rope;
}

void write_rope(const RopeSpec& rope, Json& config) {
  config.set("rope_theta", rope.theta);
  config.set("rope_scaling",
             std::visit([](const auto& scaling) { return scaling_json(scaling); }, rope.scaling));
}

}  // namespace trtmc
