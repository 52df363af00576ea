#include "cli/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace trtmc {
namespace {

// What to offer where a value is expected.
enum class Values { kNone, kChoices, kFiles, kFolders };

Values values_of(const OptionDescription& option) {
  if (!option.choices.empty()) return Values::kChoices;
  // Files are offered with the folders on the way to them.
  const std::string& name = option.names.front();
  const bool takes_file = name == "bundle" || name == "source" || name == "target";
  if (option.value == "FILE" || takes_file) return Values::kFiles;
  if (option.value == "DIR" || name == "folder") return Values::kFolders;
  return Values::kNone;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Between single quotes, for bash and zsh; fish has other rules.
std::string single_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

template <typename Visit>
void for_each_option(const CommandDescription& command, Visit&& visit) {
  for (const OptionGroup& group : command.groups) {
    for (const OptionDescription& option : group.options) visit(option);
  }
}

// The case of bash's function for one command: values after an option that takes one, else options
// and the files of its arguments.
std::string bash_case(const CommandDescription& command) {
  std::vector<std::string> options;
  std::string values;
  std::string_view files;  // Of the arguments.
  for_each_option(command, [&](const OptionDescription& option) {
    const Values kind = values_of(option);
    if (option.positional) {
      if (kind == Values::kFiles) files = "-f";
      if (kind == Values::kFolders) files = "-d";
      return;
    }
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) return;
    std::string action = "COMPREPLY=()";
    if (kind == Values::kChoices) {
      action = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))",
                           fmt::join(option.choices, " "));
    } else if (kind != Values::kNone) {
      action =
          fmt::format("compopt -o filenames; mapfile -t COMPREPLY < <(compgen {} -- \"$word\")",
                      kind == Values::kFiles ? "-f" : "-d");
    }
    values += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), action);
  });
  std::string text =
      fmt::format("    {})\n      case \"$before\" in\n{}      esac\n", command.name, values);
  text += fmt::format(
      "      if [[ $word == -* ]]; then\n"
      "        COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n",
      fmt::join(options, " "));
  if (!files.empty()) {
    text += fmt::format(
        "      else\n        compopt -o filenames\n"
        "        mapfile -t COMPREPLY < <(compgen {} -- \"$word\")\n",
        files);
  }
  return text + "      fi ;;\n";
}

// '(-o --output)'{-o,--output}'[the bundle to write]:FILE:_files'
std::string zsh_argument(const OptionDescription& option) {
  const Values kind = values_of(option);
  std::string action;
  if (kind == Values::kChoices) action = fmt::format("({})", fmt::join(option.choices, " "));
  if (kind == Values::kFiles) action = "_files";
  if (kind == Values::kFolders) action = "_files -/";
  if (option.positional) {
    return single_quoted(
        fmt::format("{}:{}:{}", option.required ? "" : ":", option.names.front(), action));
  }
  std::string help = replaced(option.help, "\\", "\\\\");
  for (const std::string_view special : {"[", "]", ":"}) {
    help = replaced(help, special, "\\" + std::string(special));
  }
  std::string rest = fmt::format("[{}]", help);
  if (!option.value.empty()) {
    rest += fmt::format(":{}:{}", replaced(option.value, ":", "\\:"), action);
  }
  const std::vector<std::string>& names = option.names;
  if (names.size() == 1) {
    return single_quoted((option.repeatable ? "*" : "") + names[0] + rest);
  }
  return fmt::format("'({})'{{{}}}{}", fmt::join(names, " "), fmt::join(names, ","),
                     single_quoted(rest));
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_line(const CommandDescription& command, const OptionDescription& option) {
  const std::string when =
      fmt::format("complete -c trtmc -n '__fish_seen_subcommand_from {}'", command.name);
  const Values kind = values_of(option);
  if (option.positional) {
    if (kind == Values::kFiles) return when + " -F\n";
    if (kind == Values::kFolders) return when + " -a '(__fish_complete_directories)'\n";
    return "";
  }
  std::string line = when;
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  line += " -d " + fish_quoted(option.help);
  if (option.value.empty()) return line + "\n";
  line += kind == Values::kFiles ? " -r -F" : " -x";
  if (kind == Values::kChoices) line += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
  if (kind == Values::kFolders) line += " -a '(__fish_complete_directories)'";
  return line + "\n";
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
  std::vector<std::string> names;
  std::string cases;
  for (const CommandDescription& command : program.commands) {
    names.push_back(command.name);
    cases += bash_case(command);
  }
  return fmt::format(
      "# Completion of trtmc for bash.\n"
      "_trtmc() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "    help) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n"
      "{}"
      "  esac\n"
      "}}\n"
      "complete -F _trtmc trtmc\n",
      fmt::join(names, " "), fmt::join(names, " "), cases);
}

std::string zsh_completion(const ProgramDescription& program) {
  std::string commands, cases;
  for (const CommandDescription& command : program.commands) {
    commands += fmt::format("    {}\n", single_quoted(command.name + ":" + command.summary));
    cases += fmt::format("    {})\n      _arguments -s", command.name);
    for_each_option(command, [&](const OptionDescription& option) {
      cases += fmt::format(" \\\n        {}", zsh_argument(option));
    });
    cases += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef trtmc\n"
      "# Completion of trtmc for zsh.\n"
      "_trtmc() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local name=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $name in\n"
      "    help) _describe command commands ;;\n"
      "{}"
      "  esac\n"
      "}}\n"
      "_trtmc \"$@\"\n",
      commands, cases);
}

std::string fish_completion(const ProgramDescription& program) {
  std::string text = "# Completion of trtmc for fish.\ncomplete -c trtmc -f\n";
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("complete -c trtmc -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(command.summary));
    for_each_option(command,
                    [&](const OptionDescription& option) { text += fish_line(command, option); });
  }
  return text;
}

}  // namespace trtmc
