#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "cli/command_parser.h"
#include "cli/option_values.h"
#include "cli/shared_options.h"

namespace trtmc {
namespace {

using Arguments = std::span<const std::string>;

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int kMaxLogprobs = 20;  // As OpenAI's top_logprobs.
constexpr int kMaxBatch = 4096;

Command parse_version(Arguments arguments, const Settings& settings) {
  VersionCommand command;
  CommandParser parser("version", "Print version, build id, compiler, backends and ISA.");
  declare_json(parser, command.json);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

std::vector<TokenId> parse_ids(const std::string& text) {
  std::vector<TokenId> ids;
  const Json json = Json::parse(text);
  for (const JsonCursor& id : JsonCursor(json).elements()) {
    ids.push_back(static_cast<TokenId>(id.integer_in(0, kMaxInt)));
  }
  return ids;
}

// The prompt is one of: text through the template, text as it is, ids.
void check_prompt(const CommandParser& parser, const RunCommand& command) {
  parser.refuse_together("prompt", "--file");
  if (command.prompt_ids) {
    parser.refuse_together("prompt", "--prompt-ids");
    parser.refuse_together("--file", "--prompt-ids");
  }
  constexpr std::string_view kChatOptions[] = {"--system", "--think", "--no-think", "--tools",
                                               "--date"};
  for (const std::string_view name : kChatOptions) {
    if (command.raw) parser.refuse_together("--raw", name);
    if (command.prompt_ids) parser.refuse_together("--prompt-ids", name);
  }
}

Command parse_run(Arguments arguments, const Settings& settings) {
  RunCommand command;
  CommandParser parser("run", "Answer one prompt.");
  declare_bundle(parser, command.bundle);
  parser.positional("prompt", "the prompt (default: standard input, every byte of it)", false,
                    [&](const std::string& text) { command.prompt.argument = text; });
  declare_json(parser, command.json);
  parser.option("--logprobs", "N", "with --json: log-probabilities, and N alternatives per token",
                [&](const std::string& text) {
                  command.sampling.logprobs =
                      static_cast<int>(parse_integer(text, 0, kMaxLogprobs));
                });
  declare_chat(parser, command.chat);
  parser.option("--tools", "FILE", "tools that the model may call: a JSON array",
                path_into(command.tools));
  declare_file(parser, command.prompt.file, "the prompt");
  parser.option("--prompt-ids", "IDS", "the prompt as token ids: '[1, 2]'",
                [&](const std::string& text) { command.prompt_ids = parse_ids(text); });
  parser.flag("--raw", "use the prompt as it is, without the chat template", command.raw);
  declare_sampling(parser, command.sampling);
  declare_load(parser, command.load);
  declare_speculate(parser, command.engine);
  declare_log(parser, command.log);
  parser.footer("The answer goes to standard output, reasoning to standard error.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  check_load(parser, command.load);
  check_chat(parser);
  check_sampling(parser, command.sampling);
  check_prompt(parser, command);
  command.chat_requested = command.chat.system || command.chat.think ||
                           !command.chat.date.empty() || !command.tools.empty();
  if (!command.json) parser.refuse_without_effect("--logprobs", "without --json");
  return command;
}

Command parse_chat(Arguments arguments, const Settings& settings) {
  ChatCommand command;
  CommandParser parser("chat", "Hold a conversation.");
  declare_bundle(parser, command.bundle);
  declare_chat(parser, command.chat);
  declare_sampling(parser, command.sampling);
  declare_load(parser, command.load);
  parser.flag("--no-prefix-cache", "read the whole conversation anew for each answer",
              [&](const std::string&) { command.engine.prefix_cache = false; });
  declare_speculate(parser, command.engine);
  declare_log(parser, command.log);
  parser.footer("Say /help for the commands within the conversation.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  check_load(parser, command.load);
  check_chat(parser);
  check_sampling(parser, command.sampling);
  return command;
}

Command parse_prompt(Arguments arguments, const Settings& settings) {
  PromptCommand command;
  CommandParser parser("prompt", "Print the exact prompt for a conversation.");
  declare_bundle(parser, command.bundle);
  declare_file(parser, command.file, "the conversation");
  parser.flag("--ids", "print token ids, not the text", command.ids);
  declare_date(parser, command.date);
  declare_log(parser, command.log);
  parser.footer(
      "The conversation is a JSON array of messages, or an object with \"messages\", \"tools\",\n"
      "\"add_generation_prompt\" and \"chat_template_kwargs\".");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

Command parse_tokenize(Arguments arguments, const Settings& settings) {
  TokenizeCommand command;
  CommandParser parser("tokenize", "Print the token ids of a text as a JSON array.");
  declare_bundle(parser, command.bundle);
  declare_file(parser, command.file, "the text");
  parser.flag("--pieces", "print each id with its text and its bytes", command.pieces);
  parser.flag("--add-special", "add what the tokenizer puts around a text", command.add_special);
  parser.flag("--plain-text", "read \"<|im_end|>\" and the like as plain text", command.plain_text);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

Command parse_detokenize(Arguments arguments, const Settings& settings) {
  DetokenizeCommand command;
  CommandParser parser("detokenize", "Print the exact bytes of a JSON array of token ids.");
  declare_bundle(parser, command.bundle);
  declare_file(parser, command.file, "the ids");
  parser.flag("--skip-special", "leave special tokens out", command.skip_special);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

Command parse_score(Arguments arguments, const Settings& settings) {
  ScoreCommand command;
  CommandParser parser("score", "Print the log-likelihood and the perplexity of a text.");
  declare_bundle(parser, command.bundle);
  declare_file(parser, command.file, "the text");
  parser.option("--window", "N", "score windows of N tokens on their own (default: the whole text)",
                [&](const std::string& text) {
                  command.window = static_cast<int>(parse_integer(text, 2, kMaxInt));
                });
  parser.flag("--per-token", "print every token's log-probability", command.per_token);
  parser.option(
      "--against", "BUNDLE",
      "compare the predictions with this bundle's, taken to be right; its keys and values "
      "are f32",
      path_into(command.against));
  declare_json(parser, command.json);
  declare_load(parser, command.load);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  check_load(parser, command.load);
  if (!command.against.empty()) parser.refuse_together("--against", "--per-token");
  return command;
}

// "512" or "0,1024,4096"
CommandParser::Setter integers_into(std::vector<int>& target, int64_t low, int64_t high) {
  return [&target, low, high](const std::string& text) {
    target.clear();
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      target.push_back(
          static_cast<int>(parse_integer(std::string_view(text).substr(at, end - at), low, high)));
      at = end + 1;
    }
  };
}

Command parse_bench(Arguments arguments, const Settings& settings) {
  BenchCommand command;
  CommandParser parser("bench", "Measure prefill and decode beside what the machine can do.");
  declare_bundle(parser, command.bundle);
  parser.option("--prefill", "N,...", "tokens of a prompt (default: 512; 0: none)",
                integers_into(command.prefills, 0, kMaxInt));
  parser.option("--decode", "N,...", "tokens to generate (default: 64; 0: none)",
                integers_into(command.decodes, 0, kMaxInt));
  parser.option("--depth", "N,...", "tokens that are there before (default: 0)",
                integers_into(command.depths, 0, kMaxInt));
  parser.option("--batch", "N,...", "sequences at once (default: 1)",
                integers_into(command.batches, 1, kMaxBatch));
  parser.option("--repeat", "N", "rounds of each, after one that is not counted (default: 5)",
                [&](const std::string& text) {
                  command.repeat = static_cast<int>(parse_integer(text, 1, kMaxInt));
                });
  parser.option("--plot", "FILE", "draw the speeds as SVG", path_into(command.plot));
  parser.flag("--json", "print one JSON array: an object for each case", command.json);
  declare_load(parser, command.load);
  declare_log(parser, command.log);
  parser.footer("Lists are combined: --depth 0,4096 --batch 1,8 measures four cases of each kind.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  check_load(parser, command.load);
  return command;
}

// A command that another file reads.
template <auto kParse>
Command parse(Arguments arguments, const Settings& settings) {
  return kParse(arguments, settings);
}

struct CommandEntry {
  std::string_view name;
  std::string_view summary;
  Command (*parse)(Arguments, const Settings&);
};
constexpr CommandEntry kCommands[] = {
    {"build", "turn a Hugging Face checkpoint into a bundle", parse<parse_build_command>},
    {"pull", "download a checkpoint from the Hugging Face hub", parse<parse_pull_command>},
    {"run", "answer one prompt", parse_run},
    {"chat", "hold a conversation", parse_chat},
    {"serve", "answer requests over HTTP, as OpenAI's API does", parse<parse_serve_command>},
    {"prompt", "print the exact prompt for a conversation", parse_prompt},
    {"tokenize", "print the token ids of a text", parse_tokenize},
    {"detokenize", "print the text of token ids", parse_detokenize},
    {"score", "print the log-likelihood and perplexity of a text", parse_score},
    {"verify", "check a bundle against its hashes, its checkpoint, Transformers",
     parse<parse_verify_command>},
    {"inspect", "print what a bundle holds", parse<parse_inspect_command>},
    {"export", "write the model as ONNX", parse<parse_export_command>},
    {"bench", "measure prefill and decode, beside the machine's own limits", parse_bench},
    {"list", "print the checkpoints in the cache, and bundles", parse<parse_list_command>},
    {"rm", "remove a checkpoint from the cache, or a bundle", parse<parse_rm_command>},
    {"version", "print version, build id, compiler, backends and ISA", parse_version},
};

// Without its commands' options.
ProgramDescription program_overview() {
  ProgramDescription program;
  program.text = "Run Hugging Face language models from one self-contained bundle.";
  for (const CommandEntry& entry : kCommands) {
    CommandDescription& command = program.commands.emplace_back();
    command.name = entry.name;
    command.summary = entry.summary;
  }
  program.examples = {"trtmc build HuggingFaceTB/SmolLM3-3B -o smollm3.trtmc",
                      "trtmc run smollm3.trtmc \"Capital of France?\""};
  program.footer = "`trtmc COMMAND --help` has each command's options.";
  program.exit_status =
      "0 success, 2 invalid argument, 3 not found, 4 corrupt, 5 unsupported,\n"
      "6 out of memory or disk, 70 a bug of trtmc, 130 interrupted.";
  return program;
}

std::string program_help() {
  const ProgramDescription program = program_overview();
  std::string text = program.text + "\nUsage: trtmc COMMAND [OPTIONS]\n\nCommands:\n";
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  text += "\nStart with:\n";
  for (const std::string& line : program.examples) text += fmt::format("  {}\n", line);
  return text + fmt::format("\n{}\n\nExit status: {}\n", program.footer, program.exit_status);
}

[[noreturn]] void refuse_unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandEntry& entry : kCommands) names.emplace_back(entry.name);
  const std::string nearest = nearest_name(name, names);
  throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown command \"{}\"", name),
              nearest.empty() ? fmt::format("commands are {}", fmt::join(names, ", "))
                              : fmt::format("did you mean \"{}\"? Commands are {}", nearest,
                                            fmt::join(names, ", ")));
}

}  // namespace

Command parse_command_line(Arguments arguments, const Settings& settings) {
  if (arguments.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "no command was given", "see `trtmc --help`");
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() == 2) {
    return parse_command_line(std::vector<std::string>{arguments[1], "--help"}, settings);
  }
  if (name == "--help" || name == "-h" || name == "help") return HelpCommand{program_help(), {}};
  if (name == "--version") return VersionCommand{};
  for (const CommandEntry& entry : kCommands) {
    if (entry.name != name) continue;
    try {
      return entry.parse(arguments.subspan(1), settings);
    } catch (const HelpRequested& help) {
      return HelpCommand{help.text, help.description};
    } catch (const Error& error) {
      if (!error.hint().empty()) throw;
      throw Error(error.code(), error.what(), fmt::format("see `trtmc {} --help`", name));
    }
  }
  refuse_unknown_command(name);
}

ProgramDescription describe_program() {
  ProgramDescription program = program_overview();
  for (CommandDescription& command : program.commands) {
    const std::string arguments[] = {command.name, "--help"};
    std::string summary = std::move(command.summary);
    command = std::get<HelpCommand>(parse_command_line(arguments, Settings())).description;
    command.summary = std::move(summary);
  }
  return program;
}

}  // namespace trtmc
