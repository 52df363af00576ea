#include "cli/shared_options.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/option_values.h"
#include "cli/route_options.h"
#include "text/chat_template.h"

namespace trtmc {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

CommandParser::Setter integer_into(int& target, int64_t low, int64_t high) {
  return [&target, low, high](const std::string& text) {
    target = static_cast<int>(parse_integer(text, low, high));
  };
}

CommandParser::Setter number_into(std::optional<double>& target, double low, double high) {
  return [&target, low, high](const std::string& text) { target = parse_number(text, low, high); };
}

// "--temperature" and the like: a number whose exact bounds belong to model/sampling.h.
void declare_number(CommandParser& parser, std::string_view name, std::optional<double>& target,
                    double low, double high, std::string_view help) {
  parser.option(name, "X", help, number_into(target, low, high));
}

// One of `names`, which are those of Type's values in their order.
template <typename Type>
void declare_type(CommandParser& parser, std::string_view name, Type& target,
                  std::span<const std::string_view> names, std::string_view help) {
  parser.shared_option(name, "TYPE", help, [&target, names](const std::string& text) {
    target = static_cast<Type>(parse_name(text, names));
  });
  parser.choices({names.begin(), names.end()});
}

constexpr std::string_view kActivationTypes[] = {"f32", "bf16"};

// "ID:BIAS"
std::pair<TokenId, float> parse_logit_bias(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\", expected ID:BIAS such as 128012:-100", text));
  }
  const auto id = parse_integer(std::string_view(text).substr(0, colon), 0, kMaxInt);
  const double bias = parse_number(std::string_view(text).substr(colon + 1), -100, 100);
  return {static_cast<TokenId>(id), static_cast<float>(bias)};
}

std::string parse_text(const std::string& text) {
  if (const auto offset = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("byte {} is not UTF-8", *offset));
  }
  return text;
}

}  // namespace

CommandParser::Setter path_into(std::filesystem::path& target) {
  return [&target](const std::string& text) {
    if (text.empty()) throw Error(ErrorCode::kInvalidArgument, "empty, expected a path");
    target = text;
  };
}

void declare_bundle(CommandParser& parser, std::filesystem::path& bundle) {
  parser.positional("bundle", "the model: a file that `trtmc build` wrote", true,
                    path_into(bundle));
}

void declare_log(CommandParser& parser, LogOptions& log) {
  parser.group("Messages");
  parser.shared_flag("--quiet", "errors only: no progress, no warnings", log.quiet);
  parser.shared_flag("--verbose", "say more of what is done and how long it took", log.verbose);
  parser.shared_option("--log-file", "FILE", "append messages to FILE, not to standard error",
                       path_into(log.file));
}

void declare_json(CommandParser& parser, bool& json) {
  parser.flag("--json", "print one JSON object", json);
}

void declare_threads(CommandParser& parser, int& threads) {
  parser.shared_option("--threads", "N", "CPU threads (default: one per core)",
                       integer_into(threads, 1, kMaxThreads));
}

void declare_load(CommandParser& parser, LoadOptions& load) {
  parser.group("Model");
  parser.shared_option("--backend", "NAME",
                       "auto, cpu, cuda, tensorrt or reference (default: auto, the CPU)",
                       [&load](const std::string& text) { load.backend = text; });
  parser.choices({"auto", "cpu", "cuda", "tensorrt", "reference"});
  declare_threads(parser, load.executor.num_threads);
  parser.shared_option("--threads-batch", "N",
                       "of steps of several tokens: prompts, answers together (default: "
                       "as --threads)",
                       integer_into(load.executor.num_threads_batch, 1, kMaxThreads));
  parser.shared_option("--context", "N", "tokens of context (default: the model's own)",
                       integer_into(load.executor.context_length, 1, kMaxInt));
  parser.shared_option("--kv-memory", "SIZE",
                       "memory for keys and values: bytes, or 512MiB, 8GiB (default: one context)",
                       [&load](const std::string& text) {
                         load.executor.kv_memory_bytes = parse_bytes(text);
                         if (load.executor.kv_memory_bytes == 0) {
                           throw Error(ErrorCode::kInvalidArgument, "0, expected a size above 0");
                         }
                       });
  declare_type(parser, "--kv-type", load.executor.kv_type, kv_type_names(),
               "how keys and values are kept: f32, bf16, fp8, or q8 (cpu)");
  declare_type(parser, "--activations", load.executor.activation_type, kActivationTypes,
               "how cuda multiplies them: f32 exactly, or bf16 as Transformers, faster");
  declare_precision(parser, load.executor.precision);
  declare_fp32_layers(parser, load.executor.fp32_layers);
  parser.shared_option("--cpu-isa", "NAME",
                       "CPU instruction set: avx512vnni, avx512, avxvnni, avx2, neon_dotprod, "
                       "neon, generic (default: "
                       "the best one here)",
                       [&load](const std::string& text) { load.executor.isa = text; });
  parser.choices({"avx512vnni", "avx512", "avxvnni", "avx2", "neon_dotprod", "neon", "generic"});
}

void declare_speculate(CommandParser& parser, EngineOptions& engine) {
  parser.shared_flag("--speculate", "guess what repeats: fewer steps, the same answer",
                     engine.speculate);
}

void declare_file(CommandParser& parser, std::filesystem::path& file, std::string_view what) {
  parser.option("--file", "FILE", fmt::format("read {} from FILE (default: standard input)", what),
                path_into(file));
}

void declare_date(CommandParser& parser, std::string& date) {
  parser.option("--date", "YYYY-MM-DD", "the day that the prompt names (default: today)",
                [&date](const std::string& text) {
                  parse_date(text);  // Throws.
                  date = text;
                });
}

void declare_chat(CommandParser& parser, ChatOptions& chat) {
  parser.group("Prompt");
  parser.option("--system", "TEXT", "the system message",
                [&chat](const std::string& text) { chat.system = parse_text(text); });
  parser.flag("--think", "let the model reason first",
              [&chat](const std::string&) { chat.think = true; });
  parser.flag("--no-think", "let it answer at once",
              [&chat](const std::string&) { chat.think = false; });
  declare_date(parser, chat.date);
}

void declare_sampling(CommandParser& parser, GenerationOptions& sampling) {
  parser.group("Sampling (default: the bundle's own values, else the model's plain distribution)");
  declare_number(parser, "--temperature", sampling.temperature, 0, kInfinity,
                 "0 takes the most likely token each time");
  parser.option("--top-k", "N", "draw from the N most likely tokens; 0: from all",
                [&sampling](const std::string& text) {
                  sampling.top_k = static_cast<int>(parse_integer(text, 0, kMaxInt));
                });
  declare_number(parser, "--top-p", sampling.top_p, 0, 1,
                 "draw from the most likely tokens that make up X of the probability");
  declare_number(parser, "--min-p", sampling.min_p, 0, 1,
                 "leave out tokens less likely than X times the most likely one");
  declare_number(parser, "--repetition-penalty", sampling.repetition_penalty, 0, kInfinity,
                 "divide the score of tokens seen before by X");
  declare_number(parser, "--presence-penalty", sampling.presence_penalty, -2, 2,
                 "subtract X from the score of tokens in the answer so far");
  declare_number(parser, "--frequency-penalty", sampling.frequency_penalty, -2, 2,
                 "subtract X for each time a token is in the answer so far");
  parser.repeatable("--logit-bias", "ID:BIAS", "add BIAS to the score of token ID; repeatable",
                    [&sampling](const std::string& text) {
                      sampling.logit_bias.push_back(parse_logit_bias(text));
                    });
  parser.shared_option(
      "--seed", "N", "repeat the same random draws (default: new ones each time)",
      [&sampling](const std::string& text) { sampling.seed = parse_unsigned(text); });
  parser.group("Length");
  parser.option("--max-tokens", "N", "end the answer after N tokens (default: the context's end)",
                integer_into(sampling.max_tokens, 1, kMaxInt));
  parser.repeatable("--stop", "TEXT", "end the answer before TEXT; repeatable",
                    [&sampling](const std::string& text) {
                      if (text.empty()) {
                        throw Error(ErrorCode::kInvalidArgument, "empty, expected a text");
                      }
                      sampling.stop.push_back(parse_text(text));
                    });
}

void check_log(const CommandParser& parser, LogOptions& log) {
  parser.refuse_together("--quiet", "--verbose");
  // One on the command line outranks the other in the environment.
  if (parser.given("--quiet")) log.verbose = false;
  if (parser.given("--verbose")) log.quiet = false;
  if (log.quiet && log.verbose) {
    throw Error(ErrorCode::kInvalidArgument,
                "the environment or the config file sets both quiet and verbose",
                "unset one of them");
  }
}

void check_load(const CommandParser& parser, const LoadOptions& load) {
  if (load.backend != "cuda") {
    parser.refuse_without_effect("--activations", "on any backend but cuda");
  } else {
    for (const std::string_view name : {"--cpu-isa", "--threads", "--threads-batch"}) {
      parser.refuse_without_effect(name, "on the cuda backend, which runs on a GPU");
    }
  }
  if (load.backend != "tensorrt") {
    parser.refuse_without_effect("--precision", "on any backend but tensorrt");
    parser.refuse_without_effect("--fp32-layer", "on any backend but tensorrt");
  } else {
    for (const std::string_view name : {"--cpu-isa", "--threads-batch"}) {
      parser.refuse_without_effect(name, "on the tensorrt backend, which runs on a GPU");
    }
    parser.refuse_without_effect("--kv-type", "on the tensorrt backend, which has --precision");
  }
  if (load.backend == "reference") {
    for (const std::string_view name : {"--threads", "--threads-batch"}) {
      parser.refuse_without_effect(name, "on the reference backend, which uses one thread");
    }
    parser.refuse_without_effect("--cpu-isa", "on the reference backend, which is plain C++");
  }
}

void check_chat(const CommandParser& parser) { parser.refuse_together("--think", "--no-think"); }

void check_sampling(const CommandParser& parser, const GenerationOptions& sampling) {
  if (sampling.temperature != 0.0) return;
  constexpr std::string_view kWhen = "at --temperature 0, which takes the most likely token";
  if (sampling.top_k.value_or(0) != 0) parser.refuse_without_effect("--top-k", kWhen);
  if (sampling.top_p.value_or(1) != 1) parser.refuse_without_effect("--top-p", kWhen);
  if (sampling.min_p.value_or(0) != 0) parser.refuse_without_effect("--min-p", kWhen);
}

}  // namespace trtmc
