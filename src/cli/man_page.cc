#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/settings.h"

namespace trtmc {
namespace {

// Text as roff takes it: a backslash and a hyphen mean themselves, and no line is a request.
std::string escaped(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

// An argument of a macro.
std::string macro_argument(std::string_view text) {
  std::string result = escaped(text);
  for (size_t at = 0; (at = result.find('"', at)) != result.npos; at += 4) {
    result.replace(at, 1, "\\(dq");
  }
  return '"' + result + '"';
}

// "Run a model." as the page's NAME has it: "run a model".
std::string name_line(std::string text) {
  text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "\fB-o\fP, \fB--output\fP \fIFILE\fP"
std::string option_tag(const OptionDescription& option) {
  if (option.positional) return fmt::format("\\fI{}\\fP", escaped(option.names.front()));
  std::string tag;
  for (const std::string& name : option.names) {
    tag += fmt::format("{}\\fB{}\\fP", tag.empty() ? "" : ", ", escaped(name));
  }
  if (!option.value.empty()) tag += fmt::format(" \\fI{}\\fP", escaped(option.value));
  return tag;
}

std::string command_section(const CommandDescription& command) {
  std::string usage = fmt::format("\\fBtrtmc {}\\fP [\\fIOPTIONS\\fP]", command.name);
  std::string body;
  for (const OptionGroup& group : command.groups) {
    body += fmt::format(".PP\n{}:\n", escaped(group.heading));
    for (const OptionDescription& option : group.options) {
      body += fmt::format(".TP\n{}\n{}\n", option_tag(option), escaped(option.help));
      if (!option.positional) continue;
      const std::string name = fmt::format("\\fI{}\\fP", escaped(option.names.front()));
      usage += option.required ? " " + name : " [" + name + "]";
    }
  }
  if (!command.footer.empty()) body += fmt::format(".PP\n{}\n", escaped(command.footer));
  return fmt::format(".SS {}\n{}\n.PP\n{}\n{}", macro_argument("trtmc " + command.name),
                     escaped(command.text), usage, body);
}

std::string environment_section() {
  std::string text =
      ".SH ENVIRONMENT\nEach sets an option of the same meaning; an option on the command line "
      "wins.\n";
  for (const SharedOption& option : shared_options()) {
    text +=
        fmt::format(".TP\n\\fB{}\\fP\n\\fB\\-\\-{}\\fP\n", option.variable, escaped(option.name));
  }
  return text +
         ".SH FILES\n.TP\n\\fI$XDG_CONFIG_HOME/trtmc/config.toml\\fP\n"
         "The same options by their names, one a line, such as \\fBthreads = 4\\fP. "
         "The environment wins.\n";
}

}  // namespace

std::string man_page(const ProgramDescription& program, const std::string& version) {
  std::string page = fmt::format(".TH TRTMC 1 \"\" {} {}\n", macro_argument("trtmc " + version),
                                 macro_argument("User Commands"));
  page += fmt::format(".SH NAME\ntrtmc \\- {}\n", escaped(name_line(program.text)));
  page += ".SH SYNOPSIS\n\\fBtrtmc\\fP \\fICOMMAND\\fP [\\fIOPTIONS\\fP]\n";
  page += ".SH DESCRIPTION\n";
  for (const CommandDescription& command : program.commands) {
    page += fmt::format(".TP\n\\fB{}\\fP\n{}\n", command.name, escaped(command.summary));
  }
  page += ".SH COMMANDS\n";
  for (const CommandDescription& command : program.commands) page += command_section(command);
  page += fmt::format(".SH \"EXIT STATUS\"\n{}\n", escaped(program.exit_status));
  page += environment_section();
  page += ".SH EXAMPLES\n.nf\n";
  for (const std::string& line : program.examples) page += escaped(line) + '\n';
  return page + ".fi\n";
}

}  // namespace trtmc
