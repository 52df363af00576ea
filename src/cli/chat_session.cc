#include "cli/chat_session.h"

#include <fmt/format.h>

#include <vector>

#include "api/question.h"
#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/option_values.h"

namespace trtmc {
namespace {

constexpr uint64_t kMaxFileBytes = 64 << 20;

struct CommandHelp {
  std::string_view name;
  std::string_view argument;
  std::string_view help;
};
constexpr CommandHelp kCommands[] = {
    {"/think", "", "let the model reason before it answers"},
    {"/no_think", "", "let it answer at once"},
    {"/system", "TEXT", "set the system message; without TEXT: none"},
    {"/save", "FILE", "write the conversation as JSON"},
    {"/load", "FILE", "take up a conversation that was saved"},
    {"/reset", "", "forget the conversation"},
    {"/help", "", "show this"},
    {"/exit", "", "end (also Ctrl-D)"},
};

std::string help_text() {
  std::string text;
  for (const CommandHelp& command : kCommands) {
    text += fmt::format("{:<16}{}\n", fmt::format("{} {}", command.name, command.argument),
                        command.help);
  }
  text += "Ctrl-C stops an answer. A line that ends in \"\\\" goes on in the next one.\n";
  text += "A message that begins with \"/\" is written with a blank in front.";
  return text;
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const CommandHelp& command : kCommands) names.emplace_back(command.name);
  const std::string nearest = nearest_name(name, names);
  throw Error(
      ErrorCode::kInvalidArgument, fmt::format("unknown command {}", name),
      nearest.empty() ? "/help names the commands" : fmt::format("did you mean {}?", nearest));
}

void require_argument(std::string_view name, std::string_view argument, bool wanted) {
  if (argument.empty() != wanted) return;
  throw Error(ErrorCode::kInvalidArgument, wanted ? fmt::format("{} needs the name of a file", name)
                                                  : fmt::format("{} takes nothing after it", name));
}

}  // namespace

ChatSession::ChatSession(std::optional<std::string> system, std::optional<bool> think)
    : system_(std::move(system)), think_(think) {}

ChatSession::Step ChatSession::enter(std::string_view line) {
  if (const auto offset = find_invalid_utf8(line)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the message: byte {} is not UTF-8", *offset));
  }
  if (line.find_first_not_of(" \t\r\n") == line.npos) return {Step::Kind::kNothing, ""};
  if (line.starts_with('/')) {
    const size_t blank = line.find_first_of(" \t");
    std::string_view argument = blank == line.npos ? "" : line.substr(blank);
    argument.remove_prefix(std::min(argument.find_first_not_of(" \t"), argument.size()));
    while (argument.ends_with(' ')) argument.remove_suffix(1);
    return run_command(line.substr(0, blank), argument);
  }
  // The blank that keeps a message from being a command is no part of it.
  if (line.starts_with(" /")) line.remove_prefix(1);
  turns_.push_back(message("user", line));
  return {Step::Kind::kAnswer, ""};
}

ChatSession::Step ChatSession::run_command(std::string_view name, std::string_view argument) {
  const auto say = [](std::string text) { return Step{Step::Kind::kSay, std::move(text)}; };
  if (name == "/system") return say(set_system(argument));
  if (name == "/save" || name == "/load") {
    require_argument(name, argument, true);
    return say(name == "/save" ? save(argument) : load(argument));
  }
  const auto no_argument = [&] { require_argument(name, argument, false); };
  if (name == "/think" || name == "/no_think") {
    no_argument();
    think_ = name == "/think";
    return say(*think_ ? "reasoning is on" : "reasoning is off");
  }
  if (name == "/reset") {
    no_argument();
    turns_.clear();
    return say("the conversation is forgotten");
  }
  if (name == "/help") {
    no_argument();
    return say(help_text());
  }
  if (name == "/exit") {
    no_argument();
    return {Step::Kind::kExit, ""};
  }
  refuse_unknown(name);
}

void ChatSession::answer(std::string_view content) {
  if (content.empty()) {
    turns_.pop_back();
  } else {
    turns_.push_back(message("assistant", content));
  }
}

Json::Array ChatSession::messages() const {
  Json::Array messages;
  if (system_) messages.push_back(message("system", *system_));
  messages.insert(messages.end(), turns_.begin(), turns_.end());
  return messages;
}

std::string ChatSession::set_system(std::string_view text) {
  if (text.empty()) {
    system_.reset();
    return "there is no system message now";
  }
  system_ = text;
  return "the system message is set";
}

std::string ChatSession::save(const std::filesystem::path& file) const {
  Json json;
  json.set("messages", messages());
  const std::string text = json.dump(2) + "\n";
  AtomicFile out(file, text.size(), AtomicFile::IfExists::kReplace);
  out.write_at(0, as_bytes(text));
  out.commit();
  return fmt::format("saved {} messages to {}", messages().size(), file.string());
}

std::string ChatSession::load(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxFileBytes);
  return with_context(file.string(), [&] {
    const Json json = Json::parse(text);
    JsonCursor root(json);
    root.refuse_unknown_keys({"messages"});
    std::optional<std::string> system;
    Json::Array turns;
    for (const JsonCursor& item : root.at("messages").elements()) {
      item.refuse_unknown_keys({"role", "content"});
      const std::string& role = item.at("role").string();
      const std::string& content = item.at("content").string();
      if (role == "system" && turns.empty() && !system) {
        system = content;
      } else if (role == "user" || role == "assistant") {
        turns.push_back(message(role, content));
      } else {
        item.fail(fmt::format("role \"{}\", expected user or assistant", role));
      }
    }
    system_ = std::move(system);
    turns_ = std::move(turns);
    return fmt::format("loaded {} messages", messages().size());
  });
}

}  // namespace trtmc
