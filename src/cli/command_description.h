// What a command takes, as its options were declared: the one source of --help, of the man page and
// of the shells' completions.
#pragma once

#include <string>
#include <vector>

namespace trtmc {

struct OptionDescription {
  std::vector<std::string> names;  // "-o" and "--output"; of a positional: its name.
  std::string value;               // "FILE"; empty for a flag and for a positional.
  std::string help;
  std::vector<std::string> choices;  // All values that there are; empty: any.
  bool positional = false;
  bool required = false;
  bool repeatable = false;
};

struct OptionGroup {
  std::string heading;
  std::vector<OptionDescription> options;
};

struct CommandDescription {
  std::string name;     // "run"
  std::string summary;  // "answer one prompt"
  std::string text;     // "Answer one prompt."
  std::vector<OptionGroup> groups;
  std::string footer;
};

struct ProgramDescription {
  std::string text;
  std::vector<CommandDescription> commands;
  std::vector<std::string> examples;  // Lines of the shell.
  std::string footer;                 // Where to read on.
  std::string exit_status;
};

}  // namespace trtmc
