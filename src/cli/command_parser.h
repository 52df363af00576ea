// Declares the options of one command and reads its arguments. The only user of CLI11, which takes
// long to compile and so stays out of this header.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_description.h"
#include "cli/settings.h"

namespace trtmc {

// --help was given; not a failure.
struct HelpRequested {
  std::string text;
  CommandDescription description;  // The same as values; without the summary.
};

class CommandParser {
 public:
  // Takes one value; throws kInvalidArgument with a message that reads on from the option's name.
  using Setter = std::function<void(const std::string&)>;

  CommandParser(std::string_view command, std::string_view description);
  ~CommandParser();

  // The heading in --help over the options declared after it.
  void group(std::string_view heading);
  void positional(std::string_view name, std::string_view help, bool required, Setter set);
  // At least one; the last positional there is.
  void positionals(std::string_view name, std::string_view help, Setter set);
  void flag(std::string_view name, std::string_view help, bool& target);
  // A flag with an effect of its own; `set` gets "true".
  void flag(std::string_view name, std::string_view help, Setter set);
  // `names` is "--output" or "-o,--output".
  void option(std::string_view names, std::string_view value, std::string_view help, Setter set);
  void repeatable(std::string_view name, std::string_view value, std::string_view help, Setter set);
  // Like option() and flag(), and also set by the environment and the config file.
  void shared_option(std::string_view name, std::string_view value, std::string_view help,
                     Setter set);
  void shared_flag(std::string_view name, std::string_view help, bool& target);
  // Outside the command line its values stand in one, with blanks between them.
  void shared_repeatable(std::string_view name, std::string_view value, std::string_view help,
                         Setter set);
  // All values that the option declared last can take, for the shells to complete.
  void choices(std::vector<std::string> values);
  void footer(std::string_view text);

  // Throws HelpRequested, or kInvalidArgument with a hint.
  void parse(std::span<const std::string> arguments, const Settings& settings);

  // After parse(): whether `name` stands on the command line itself.
  bool given(std::string_view name) const;
  // Throws kInvalidArgument if both are given: "--think and --no-think contradict each other".
  void refuse_together(std::string_view a, std::string_view b) const;
  // Throws kInvalidArgument "<name> has no effect <when>" if `name` is given.
  void refuse_without_effect(std::string_view name, std::string_view when) const;
  void require(std::string_view name) const;

 private:
  CommandDescription describe() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
