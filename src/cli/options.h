// The command line as plain values: what each command was asked to do, after options, environment
// and config file have been weighed and contradictions refused.
#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "builder/build_plan.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "engine/loaded_model.h"
#include "hub/hub_id.h"
#include "model/sampling.h"

namespace trtmc {

// What the request says about sampling; the rest comes from the bundle.
struct SamplingOptions {
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::optional<uint64_t> seed;
  int max_tokens = 0;  // 0: to the context's end.
  std::vector<std::string> stop;
};

struct ChatOptions {
  std::optional<std::string> system;
  std::optional<bool> think;  // Nothing: the template's own default.
  std::optional<std::tm> date;
};

struct HelpCommand {
  std::string text;
};
struct VersionCommand {
  LogOptions log;
  bool json = false;
};
struct BuildCommand {
  LogOptions log;
  std::filesystem::path source;  // A folder, or a model's id on the hub.
  std::filesystem::path output;
  BuildOptions build;
  int threads = 0;
  bool dry_run = false, force = false, json = false;
};
struct PullCommand {
  LogOptions log;
  HubSource source;
  bool json = false;
};
struct ListCommand {
  LogOptions log;
  std::filesystem::path folder = ".";  // Of bundles.
  bool json = false;
};
struct RmCommand {
  LogOptions log;
  std::string target;  // A bundle's path, or "ID" or "ID@REVISION" in the cache.
  bool yes = false;    // Do not ask.
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
  SamplingOptions sampling;
  std::optional<int> logprobs;
  bool json = false;
};
struct ChatCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  ChatOptions chat;
  SamplingOptions sampling;
};
struct PromptCommand {
  LogOptions log;
  std::filesystem::path bundle;
  std::filesystem::path file;  // Empty: standard input.
  std::optional<std::tm> date;
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
  int window = 0;  // 0: the whole text at once.
  bool per_token = false, json = false;
};
struct VerifyCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  std::filesystem::path checkpoint;     // Empty: not compared.
  bool compare_with_reference = false;  // load.backend against reference.
  std::filesystem::path goldens;        // Empty: not compared.
  bool json = false;
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
struct InspectCommand {
  LogOptions log;
  std::filesystem::path bundle;
  bool backends = false, json = false;
};

using Command =
    std::variant<HelpCommand, VersionCommand, BuildCommand, PullCommand, ListCommand, RmCommand,
                 RunCommand, ChatCommand, PromptCommand, TokenizeCommand, DetokenizeCommand,
                 ScoreCommand, VerifyCommand, InspectCommand, BenchCommand>;

// `arguments` without the program's name. Throws kInvalidArgument with a hint.
Command parse_command_line(std::span<const std::string> arguments, const Settings& settings);

}  // namespace trtmc
