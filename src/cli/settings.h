// What the options that several commands share are set to outside the command line: by the
// environment (TRTMC_THREADS), else by the config file $XDG_CONFIG_HOME/trtmc/config.toml
// (threads = 4). docs/environment_variables.md lists them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/environment.h"

namespace trtmc {

class Settings {
 public:
  struct Value {
    std::string text;
    std::string where;  // What to name in a complaint: "TRTMC_THREADS".
  };

  Settings() = default;  // Nothing is set.
  // Throws kInvalidArgument naming the line of a config file that can't be read as one.
  explicit Settings(const Environment& environment);

  // `option` without its dashes, one of shared_options().
  std::optional<Value> find(std::string_view option) const;

 private:
  void read_config(const std::filesystem::path& path, std::string_view text);

  std::map<std::string, Value, std::less<>> values_;
};

// The options that can be set so, each with its variable: {"threads", "TRTMC_THREADS"}.
struct SharedOption {
  const char* name;
  const char* variable;
};
std::span<const SharedOption> shared_options();

// A folder of the XDG base directory specification with /trtmc below it: the variable if it holds
// an absolute path, else `fallback` below the home folder. Nothing if there is no home either.
std::optional<std::filesystem::path> user_folder(const Environment& environment,
                                                 const char* variable, std::string_view fallback);

}  // namespace trtmc
