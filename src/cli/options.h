// The command line as plain values: what each command was asked to do, after options, environment
// and config file have been weighed and contradictions refused.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/bundle_options.h"
#include "cli/command_description.h"
#include "cli/console.h"
#include "cli/serve_options.h"
#include "cli/settings.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "trtmc/trtmc.h"

namespace trtmc {

struct HelpCommand {
  std::string text;
  CommandDescription description{};  // Of a command's help.
};
struct VersionCommand {
  LogOptions log;
  bool json = false;
};
struct RunCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  TextSource prompt;
  std::optional<std::vector<TokenId>> prompt_ids;
  bool raw = false;
  ChatOptions chat;
  bool chat_requested = false;  // An option was given that only the chat template can honour.
  std::filesystem::path tools;  // Empty: none.
  GenerationOptions sampling;
  EngineOptions engine;
  bool json = false;
};
struct ChatCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  ChatOptions chat;
  GenerationOptions sampling;
  EngineOptions engine;
};
struct PromptCommand {
  LogOptions log;
  std::filesystem::path bundle;
  std::filesystem::path file;  // Empty: standard input.
  std::string date;            // Empty: today.
  bool ids = false;
};
struct TokenizeCommand {
  LogOptions log;
  std::filesystem::path bundle;
  std::filesystem::path file;
  bool pieces = false, add_special = false, plain_text = false;
};
struct DetokenizeCommand {
  LogOptions log;
  std::filesystem::path bundle;
  std::filesystem::path file;
  bool skip_special = false;
};
struct ScoreCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  std::filesystem::path file;
  int window = 0;                 // 0: the whole text at once.
  std::filesystem::path against;  // Empty: not compared with another bundle.
  bool per_token = false, json = false;
};
struct BenchCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  // Every combination is measured; a length of 0 is none.
  std::vector<int> prefills = {512}, decodes = {64}, depths = {0}, batches = {1};
  int repeat = 5;
  std::filesystem::path plot;  // Empty: none.
  bool json = false;
};

using Command = std::variant<HelpCommand, VersionCommand, BuildCommand, PullCommand, ListCommand,
                             RmCommand, RunCommand, ChatCommand, PromptCommand, TokenizeCommand,
                             DetokenizeCommand, ScoreCommand, VerifyCommand, InspectCommand,
                             ExportCommand, BenchCommand, ServeCommand>;

// `arguments` without the program's name. Throws kInvalidArgument with a hint.
Command parse_command_line(std::span<const std::string> arguments, const Settings& settings);

// Everything that --help of the program and of its commands says.
ProgramDescription describe_program();

}  // namespace trtmc
