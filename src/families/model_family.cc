#include "families/model_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace trtmc {
namespace {

std::string supported() {
  std::vector<std::string> entries;
  for (const ModelFamily* family : all_families())
    entries.push_back(fmt::format("{} ({})", fmt::join(family->architectures, ", "), family->name));
  return fmt::format("supported: {}", fmt::join(entries, "; "));
}

const ModelFamily& family_called(std::string_view name) {
  for (const ModelFamily* family : all_families()) {
    if (family->name == name) return *family;
  }
  throw Error(ErrorCode::kUnsupported, fmt::format("no model family is called \"{}\"", name),
              supported());
}

std::vector<std::string> read_architectures(const Json& config) {
  std::vector<std::string> architectures;
  if (const auto list = JsonCursor(config).find_set("architectures")) {
    for (const JsonCursor& element : list->elements()) architectures.push_back(element.string());
  }
  if (architectures.empty()) {
    throw Error(ErrorCode::kUnsupported, "config.json names no architecture",
                supported() + "; or name the family with --family");
  }
  return architectures;
}

// A spec that is no checkpoint's, with two lengths of window for example, is one that the family's
// keys have no words for.
void check_says_all(const ModelFamily& family, const DecoderSpec& spec, const Json& config) {
  bool same = false;
  std::string reason;
  try {
    same = family.read_spec(config) == spec;
  } catch (const Error& error) {
    reason = error.what();
  }
  if (same) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("a config.json of {} can't say what this model is", family.name),
              reason.empty() ? "its layers differ in what the family has one value for" : reason);
}

}  // namespace

const ModelFamily& find_family(const Json& config, std::string_view name) {
  if (!name.empty()) return family_called(name);
  const std::vector<std::string> asked = read_architectures(config);
  for (const ModelFamily* family : all_families()) {
    for (const std::string_view known : family->architectures) {
      if (std::find(asked.begin(), asked.end(), known) != asked.end()) return *family;
    }
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("the architecture {} is not supported", fmt::join(asked, ", ")),
              supported());
}

Json config_json(const ModelFamily& family, const DecoderSpec& spec) {
  Json config;
  config.set("architectures", Json::Array{family.architectures.front()});
  config.set("model_type", family.name);
  const Json members = family.write_spec(spec);
  for (const auto& [key, value] : *members.object()) config.set(key, value);
  config.set("use_cache", true);
  check_says_all(family, spec, config);
  return config;
}

}  // namespace trtmc
