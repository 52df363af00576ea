#include "cli/command_parser.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "cli/option_values.h"

namespace trtmc {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr char kArguments[] = "Arguments";  // The heading over positionals.

struct Declared {
  CLI::Option* option;
  CommandParser::Setter set;
  std::vector<std::string> choices{};
  bool is_flag = false;
  bool repeatable = false;
  bool shared = false;
};

// CLI11 puts two empty lines between headings.
std::string without_double_gaps(std::string text) {
  for (size_t at; (at = text.find("\n\n\n")) != text.npos;) text.erase(at, 1);
  return text;
}

// "--output" of "-o,--output"; a positional's own name.
std::string display_name(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_name();
}

// "-o" and "--output", or the name of a positional.
std::vector<std::string> names_of(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true)};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// The group with that heading, added behind the others if it is new.
OptionGroup& group_of(CommandDescription& command, std::string_view heading) {
  for (OptionGroup& group : command.groups) {
    if (group.heading == heading) return group;
  }
  return command.groups.emplace_back(OptionGroup{std::string(heading), {}});
}

}  // namespace

struct CommandParser::Impl {
  CLI::App app;
  std::string heading = "Options";
  std::vector<Declared> declared;

  CLI::Option* add(std::string_view names, std::string_view help) {
    // Values are applied by parse(), after environment and config file are known to be needed.
    CLI::Option* const option = app.add_option(
        std::string(names), [](const CLI::results_t&) { return true; }, std::string(help));
    // How often it may be given is for apply() to say.
    return option->group(heading)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  static void take_all(Declared& repeated) {
    repeated.repeatable = true;
    repeated.option->expected(1, CLI::detail::expected_max_vector_size);
    repeated.option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  Declared& find(std::string_view name) {
    const CLI::Option* const option = app.get_option(std::string(name));
    const auto found = std::find_if(declared.begin(), declared.end(),
                                    [&](const Declared& d) { return d.option == option; });
    TRTMC_CHECK(found != declared.end(), "an option that was never declared");
    return *found;
  }

  [[noreturn]] void refuse_unknown(const std::string& argument) const;
  void apply(const Declared& declared, const Settings& settings) const;
};

// "unknown option --thinks" with the nearest known one as the hint.
void CommandParser::Impl::refuse_unknown(const std::string& argument) const {
  if (!argument.starts_with('-') || argument == "-") {
    throw Error(
        ErrorCode::kInvalidArgument, fmt::format("unexpected argument \"{}\"", argument),
        fmt::format("put quotes around a text with blanks; see `{} --help`", app.get_name()));
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names.push_back("--" + option->get_lnames().front());
  }
  const std::string nearest = nearest_name(name, names);
  throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown option {}", name),
              nearest.empty() ? fmt::format("see `{} --help`; a text that begins with \"-\" stands "
                                            "after \"--\"",
                                            app.get_name())
                              : fmt::format("did you mean {}?", nearest));
}

void CommandParser::Impl::apply(const Declared& declared_option, const Settings& settings) const {
  const CLI::Option& option = *declared_option.option;
  if (option.count() > 0) {
    with_context(display_name(option), [&] {
      if (declared_option.is_flag) return declared_option.set("true");
      if (option.count() > 1 && !declared_option.repeatable) {
        throw Error(ErrorCode::kInvalidArgument, "given more than once", "leave all but one out");
      }
      for (const std::string& value : option.results()) declared_option.set(value);
    });
  } else if (declared_option.shared) {
    const auto value = settings.find(option.get_lnames().front());
    if (!value) return;
    with_context(value->where, [&] {
      if (!declared_option.repeatable) return declared_option.set(value->text);
      std::istringstream words(value->text);
      for (std::string word; words >> word;) declared_option.set(word);
    });
  }
}

CommandParser::CommandParser(std::string_view command, std::string_view description)
    : impl_(std::make_unique<Impl>()) {
  impl_->app.name(fmt::format("trtmc {}", command));
  impl_->app.description(std::string(description));
  impl_->app.set_help_flag();  // Declared last, by parse().
  impl_->app.get_formatter()->column_width(kHelpColumn);
  impl_->app.get_formatter()->label("Positionals", kArguments);
}

CommandParser::~CommandParser() = default;

void CommandParser::group(std::string_view heading) { impl_->heading = heading; }

void CommandParser::choices(std::vector<std::string> values) {
  impl_->declared.back().choices = std::move(values);
}

void CommandParser::footer(std::string_view text) { impl_->app.footer(std::string(text)); }

void CommandParser::positional(std::string_view name, std::string_view help, bool required,
                               Setter set) {
  CLI::Option* const option = impl_->add(name, help);
  option->option_text(" ");
  if (required) option->required();
  impl_->declared.push_back({option, std::move(set)});
}

void CommandParser::positionals(std::string_view name, std::string_view help, Setter set) {
  positional(name, help, true, std::move(set));
  impl_->take_all(impl_->declared.back());
  impl_->declared.back().option->allow_extra_args(true);
}

void CommandParser::flag(std::string_view name, std::string_view help, bool& target) {
  flag(name, help, [&target](const std::string& text) { target = parse_boolean(text); });
}

void CommandParser::flag(std::string_view name, std::string_view help, Setter set) {
  CLI::Option* const option = impl_->app.add_flag_callback(
      std::string(name), [] {}, std::string(help));
  option->group(impl_->heading);
  impl_->declared.push_back({option, std::move(set), {}, true});
}

void CommandParser::option(std::string_view names, std::string_view value, std::string_view help,
                           Setter set) {
  CLI::Option* const option = impl_->add(names, help);
  option->option_text(std::string(value));
  impl_->declared.push_back({option, std::move(set)});
}

void CommandParser::repeatable(std::string_view name, std::string_view value, std::string_view help,
                               Setter set) {
  option(name, value, help, std::move(set));
  impl_->take_all(impl_->declared.back());
  impl_->declared.back().option->allow_extra_args(false);
}

void CommandParser::shared_option(std::string_view name, std::string_view value,
                                  std::string_view help, Setter set) {
  option(name, value, help, std::move(set));
  impl_->declared.back().shared = true;
}

void CommandParser::shared_flag(std::string_view name, std::string_view help, bool& target) {
  flag(name, help, target);
  impl_->declared.back().shared = true;
}

void CommandParser::shared_repeatable(std::string_view name, std::string_view value,
                                      std::string_view help, Setter set) {
  repeatable(name, value, help, std::move(set));
  impl_->declared.back().shared = true;
}

void CommandParser::parse(std::span<const std::string> arguments, const Settings& settings) {
  CLI::App& app = impl_->app;
  app.set_help_flag("-h,--help", "print this help and exit")->group(impl_->heading);
  app.allow_extras();
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // As CLI11 wants it.
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    throw HelpRequested{without_double_gaps(app.help()), describe()};
  } catch (const CLI::RequiredError&) {
    for (const std::string& extra : app.remaining()) {
      if (extra.starts_with("--") && extra != "--") impl_->refuse_unknown(extra);
    }
    for (const Declared& declared : impl_->declared) {
      if (declared.option->get_required()) require(display_name(*declared.option));
    }
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what(),
                fmt::format("see `{} --help`", app.get_name()));
  }
  for (const std::string& extra : app.remaining()) {
    if (extra != "--") impl_->refuse_unknown(extra);
  }
  for (const Declared& declared : impl_->declared) impl_->apply(declared, settings);
}

CommandDescription CommandParser::describe() const {
  CommandDescription command;
  command.name = impl_->app.get_name().substr(std::string_view("trtmc ").size());
  command.text = impl_->app.get_description();
  command.footer = impl_->app.get_footer();
  for (const CLI::Option* const option : std::as_const(impl_->app).get_options()) {
    OptionDescription described;
    described.names = names_of(*option);
    described.help = option->get_description();
    described.positional = option->get_positional();
    described.required = option->get_required();
    if (!described.positional) described.value = option->get_option_text();
    const auto declared = std::find_if(impl_->declared.begin(), impl_->declared.end(),
                                       [&](const Declared& d) { return d.option == option; });
    if (declared != impl_->declared.end()) {
      described.choices = declared->choices;
      described.repeatable = declared->repeatable;
    }
    group_of(command, described.positional ? kArguments : option->get_group())
        .options.push_back(std::move(described));
  }
  return command;
}

bool CommandParser::given(std::string_view name) const {
  return impl_->find(name).option->count() > 0;
}

void CommandParser::refuse_together(std::string_view a, std::string_view b) const {
  if (!given(a) || !given(b)) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} and {} contradict each other", a, b),
              "leave one of them out");
}

void CommandParser::refuse_without_effect(std::string_view name, std::string_view when) const {
  if (!given(name)) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} has no effect {}", name, when),
              "leave it out");
}

void CommandParser::require(std::string_view name) const {
  if (given(name)) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is missing", name),
              fmt::format("see `{} --help`", impl_->app.get_name()));
}

}  // namespace trtmc
