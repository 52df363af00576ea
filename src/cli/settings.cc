#include "cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/option_values.h"

namespace trtmc {
namespace {

constexpr SharedOption kSharedOptions[] = {
    {"backend", "TRTMC_BACKEND"},
    {"threads", "TRTMC_THREADS"},
    {"threads-batch", "TRTMC_THREADS_BATCH"},
    {"context", "TRTMC_CONTEXT"},
    {"kv-memory", "TRTMC_KV_MEMORY"},
    {"kv-type", "TRTMC_KV_TYPE"},
    {"activations", "TRTMC_ACTIVATIONS"},
    {"cpu-isa", "TRTMC_CPU_ISA"},
    {"seed", "TRTMC_SEED"},
    {"quiet", "TRTMC_QUIET"},
    {"verbose", "TRTMC_VERBOSE"},
    {"log-file", "TRTMC_LOG_FILE"},
    {"host", "TRTMC_HOST"},
    {"port", "TRTMC_PORT"},
    {"api-key-file", "TRTMC_API_KEY_FILE"},
    {"tls-cert", "TRTMC_TLS_CERT"},
    {"tls-key", "TRTMC_TLS_KEY"},
    {"cors-origin", "TRTMC_CORS_ORIGIN"},
    {"max-queue", "TRTMC_MAX_QUEUE"},
    {"max-connections", "TRTMC_MAX_CONNECTIONS"},
    {"max-body", "TRTMC_MAX_BODY"},
    {"max-unsent", "TRTMC_MAX_UNSENT"},
    {"request-timeout", "TRTMC_REQUEST_TIMEOUT"},
    {"idle-timeout", "TRTMC_IDLE_TIMEOUT"},
    {"drain-seconds", "TRTMC_DRAIN_SECONDS"},
    {"log-format", "TRTMC_LOG_FORMAT"},
    {"speculate", "TRTMC_SPECULATE"},
};
constexpr uint64_t kMaxConfigBytes = 1 << 20;

// The value of `key = VALUE`: a string in one of TOML's two quotes, or a bare number or boolean.
// Nothing for what is neither.
std::optional<std::string> parse_value(std::string_view text) {
  const char quote = text.empty() ? '\0' : text.front();
  if (quote != '"' && quote != '\'') {
    const std::string_view bare = trimmed(text.substr(0, text.find('#')));
    if (bare.empty() || bare.find_first_of("\"'[]{}, \t") != std::string_view::npos) return {};
    return std::string(bare);
  }
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      const std::string_view rest = trimmed(text.substr(i + 1));
      if (!rest.empty() && rest.front() != '#') return {};
      return value;
    }
    if (quote == '"' && text[i] == '\\') {
      if (++i == text.size() || (text[i] != '"' && text[i] != '\\')) return {};
    }
    value += text[i];
  }
  return {};
}

}  // namespace

std::span<const SharedOption> shared_options() { return kSharedOptions; }

Settings::Settings(const Environment& environment) {
  if (const auto folder = user_folder(environment, "XDG_CONFIG_HOME", ".config")) {
    const std::filesystem::path path = *folder / "config.toml";
    if (has_file(path)) read_config(path, read_file(path, kMaxConfigBytes));
  }
  for (const SharedOption& option : kSharedOptions) {
    if (const auto value = environment(option.variable)) {
      values_[option.name] = {*value, option.variable};
    }
  }
}

void Settings::read_config(const std::filesystem::path& path, std::string_view text) {
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(
        std::min(text.size(), text.find('\n') == text.npos ? text.size() : text.find('\n') + 1));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", path.string(), number);
    const size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, equals));
    const auto value =
        equals == line.npos ? std::nullopt : parse_value(trimmed(line.substr(equals + 1)));
    if (!value) {
      throw Error(ErrorCode::kInvalidArgument, where + ": not a line of the form key = value",
                  "values are numbers, true, false, or strings in quotes; there are no sections");
    }
    std::vector<std::string> known;
    for (const SharedOption& option : kSharedOptions) known.emplace_back(option.name);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: unknown key \"{}\"", where, key),
                  fmt::format("known are {}", fmt::join(known, ", ")));
    }
    if (!values_.try_emplace(std::string(key), Value{*value, fmt::format("{}: {}", where, key)})
             .second) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} is set twice", where, key),
                  "delete one of the two lines");
    }
  }
}

std::optional<Settings::Value> Settings::find(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return {};
  return found->second;
}

std::optional<std::filesystem::path> user_folder(const Environment& environment,
                                                 const char* variable, std::string_view fallback) {
  if (const auto folder = environment(variable); folder && folder->starts_with('/')) {
    return std::filesystem::path(*folder) / "trtmc";
  }
  const auto home = environment("HOME");
  if (!home) return {};
  return std::filesystem::path(*home) / fallback / "trtmc";
}

}  // namespace trtmc
