#include "cli/options.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace trtmc {
namespace {

using Arguments = std::vector<std::string>;

Settings settings_of(std::map<std::string, std::string> variables) {
  return Settings([variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  });
}

template <typename T>
T parse(const Arguments& arguments, const Settings& settings = {}) {
  return std::get<T>(parse_command_line(arguments, settings));
}

struct Refusal {
  ErrorCode code;
  std::string message, hint;
};
Refusal refusal(const Arguments& arguments, const Settings& settings = {}) {
  try {
    parse_command_line(arguments, settings);
  } catch (const Error& error) {
    return {error.code(), error.what(), error.hint()};
  }
  return {ErrorCode::kInternal, "no error", ""};
}

TEST(Options, RunTakesAPromptAndSampling) {
  const auto run = parse<RunCommand>({"run", "m.trtmc", "Hello there", "--temperature", "0.5",
                                      "--top-k=40", "--seed", "7", "--stop", "a", "--stop", "b",
                                      "--logit-bias", "5:-1.5", "--max-tokens", "9", "--no-think"});
  EXPECT_EQ(run.bundle, "m.trtmc");
  EXPECT_EQ(run.prompt.argument, "Hello there");
  EXPECT_EQ(run.sampling.temperature, 0.5);
  EXPECT_EQ(run.sampling.top_k, 40);
  EXPECT_EQ(run.sampling.seed, 7u);
  EXPECT_EQ(run.sampling.stop, (Arguments{"a", "b"}));
  ASSERT_EQ(run.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(run.sampling.logit_bias[0], std::pair(5, -1.5f));
  EXPECT_EQ(run.sampling.max_tokens, 9);
  EXPECT_EQ(run.chat.think, false);
  EXPECT_FALSE(run.sampling.top_p.has_value());
}

TEST(Options, OptionsMayStandBeforeArguments) {
  const auto run = parse<RunCommand>({"run", "--stop", "x", "m.trtmc", "--json", "Hi"});
  EXPECT_EQ(run.bundle, "m.trtmc");
  EXPECT_EQ(run.prompt.argument, "Hi");
  EXPECT_TRUE(run.json);
}

TEST(Options, APromptThatBeginsWithADashStandsAfterTwo) {
  EXPECT_EQ(parse<RunCommand>({"run", "m.trtmc", "--", "-5 + 3"}).prompt.argument, "-5 + 3");
  EXPECT_EQ(parse<RunCommand>({"run", "m.trtmc", "--", "--json"}).prompt.argument, "--json");
}

TEST(Options, AnEmptyPromptIsAPrompt) {
  EXPECT_EQ(parse<RunCommand>({"run", "m.trtmc", ""}).prompt.argument, "");
}

TEST(Options, PromptIdsAreAJsonArray) {
  const auto run = parse<RunCommand>({"run", "m", "--prompt-ids", "[1, 2, 128000]"});
  EXPECT_EQ(run.prompt_ids, (std::vector<TokenId>{1, 2, 128000}));
  for (const char* text : {"1,2", "[1.5]", "[-1]", "[99999999999]", "{}", "[\"1\"]"}) {
    const Refusal refused = refusal({"run", "m", "--prompt-ids", text});
    EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument) << text;
    EXPECT_TRUE(refused.message.starts_with("--prompt-ids: ")) << refused.message;
  }
}

TEST(Options, TheCommandLineOutranksTheEnvironment) {
  const Settings settings = settings_of({{"TRTMC_THREADS", "3"}, {"TRTMC_BACKEND", "reference"}});
  const auto run = parse<RunCommand>({"run", "m", "--threads", "5", "--backend", "cpu"}, settings);
  EXPECT_EQ(run.load.executor.num_threads, 5);
  EXPECT_EQ(run.load.backend, "cpu");
  const auto chat = parse<ChatCommand>({"chat", "m"}, settings);
  EXPECT_EQ(chat.load.executor.num_threads, 3);
  EXPECT_EQ(chat.load.backend, "reference");
}

TEST(Options, ThreadsOfSeveralTokensAreApart) {
  const Settings settings = settings_of({{"TRTMC_THREADS_BATCH", "6"}});
  const auto run = parse<RunCommand>({"run", "m", "--threads", "2"}, settings);
  EXPECT_EQ(run.load.executor.num_threads, 2);
  EXPECT_EQ(run.load.executor.num_threads_batch, 6);
  const auto serve = parse<ServeCommand>({"serve", "m", "--threads-batch", "4"}, settings);
  EXPECT_EQ(serve.service.load.executor.num_threads, 0);
  EXPECT_EQ(serve.service.load.executor.num_threads_batch, 4);
}

TEST(Options, AComplaintNamesTheVariable) {
  EXPECT_EQ(refusal({"run", "m"}, settings_of({{"TRTMC_THREADS", "many"}})).message,
            "TRTMC_THREADS: \"many\", expected a whole number from 1 to 1024");
}

TEST(Options, QuietOnTheCommandLineOutranksVerboseInTheEnvironment) {
  const Settings settings = settings_of({{"TRTMC_VERBOSE", "1"}});
  EXPECT_TRUE(parse<VersionCommand>({"version"}, settings).log.verbose);
  const auto version = parse<VersionCommand>({"version", "--quiet"}, settings);
  EXPECT_TRUE(version.log.quiet);
  EXPECT_FALSE(version.log.verbose);
}

TEST(Options, KvMemoryTakesUnits) {
  const auto run = parse<RunCommand>({"run", "m", "--kv-memory", "2GiB", "--kv-type", "bf16"});
  EXPECT_EQ(run.load.executor.kv_memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(run.load.executor.kv_type, KvType::kBF16);
}

TEST(Options, ContradictionsAreRefused) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--think", "--no-think"}, "--think and --no-think contradict each other"},
      {{"--raw", "--system", "x"}, "--raw and --system contradict each other"},
      {{"--raw", "--think"}, "--raw and --think contradict each other"},
      {{"--raw", "--tools", "x"}, "--raw and --tools contradict each other"},
      {{"--raw", "--date", "2026-01-01"}, "--raw and --date contradict each other"},
      {{"Hi", "--prompt-ids", "[1]"}, "prompt and --prompt-ids contradict each other"},
      {{"Hi", "--file", "x"}, "prompt and --file contradict each other"},
      {{"--file", "x", "--prompt-ids", "[1]"}, "--file and --prompt-ids contradict each other"},
      {{"--prompt-ids", "[1]", "--system", "x"}, "--prompt-ids and --system contradict each other"},
      {{"--quiet", "--verbose"}, "--quiet and --verbose contradict each other"},
      {{"--logprobs", "2"}, "--logprobs has no effect without --json"},
      {{"--temperature", "0", "--top-p", "0.9"},
       "--top-p has no effect at --temperature 0, which takes the most likely token"},
      {{"--backend", "reference", "--threads-batch", "2"},
       "--threads-batch has no effect on the reference backend, which uses one thread"},
      {{"--backend", "cuda", "--threads-batch", "2"},
       "--threads-batch has no effect on the cuda backend, which runs on a GPU"},
      {{"--backend", "tensorrt", "--threads-batch", "2"},
       "--threads-batch has no effect on the tensorrt backend, which runs on a GPU"},
      {{"--backend", "reference", "--cpu-isa", "avx2"},
       "--cpu-isa has no effect on the reference backend, which is plain C++"},
  };
  for (const auto& [more, message] : cases) {
    Arguments arguments = {"run", "m.trtmc"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Refusal refused = refusal(arguments);
    EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.message, message);
    EXPECT_NE(refused.hint, "");
  }
}

TEST(Options, ValuesOutOfRangeAreRefused) {
  const Arguments cases[] = {
      {"--temperature", "-1"},
      {"--temperature", "nan"},
      {"--top-p", "1.5"},
      {"--top-k", "-1"},
      {"--min-p", "2"},
      {"--max-tokens", "0"},
      {"--threads", "0"},
      {"--context", "0"},
      {"--seed", "-1"},
      {"--threads-batch", "0"},
      {"--threads-batch", "1025"},
      {"--threads-batch", "two"},
      {"--kv-type", "f16"},
      {"--stop", ""},
      {"--kv-memory", "0"},
      {"--date", "2026-13-01"},
      {"--logprobs", "21"},
      {"--logit-bias", "5"},
  };
  for (const Arguments& more : cases) {
    Arguments arguments = {"run", "m.trtmc", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Refusal refused = refusal(arguments);
    EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument) << more[0] << " " << more[1];
    EXPECT_TRUE(refused.message.starts_with(more[0] + ": ")) << refused.message;
    EXPECT_NE(refused.hint, "");
  }
}

TEST(Options, ASlipIsGuessed) {
  EXPECT_EQ(refusal({"rum", "m"}).message, "unknown command \"rum\"");
  EXPECT_TRUE(refusal({"rum", "m"}).hint.starts_with("did you mean \"run\"?"));
  EXPECT_EQ(refusal({"run", "m", "--temprature", "1"}).message, "unknown option --temprature");
  EXPECT_EQ(refusal({"run", "m", "--temprature=1"}).hint, "did you mean --temperature?");
}

TEST(Options, PullTakesAnIdAndARevision) {
  EXPECT_EQ(parse<PullCommand>({"pull", "a/b"}).source, (HubSource{{"a", "b"}, ""}));
  EXPECT_EQ(parse<PullCommand>({"pull", "a/b@v1", "--json"}).source, (HubSource{{"a", "b"}, "v1"}));
  EXPECT_EQ(refusal({"pull", "../b"}).message, "id: \"../b\": not the id of a model on the hub");
  EXPECT_EQ(refusal({"pull"}).code, ErrorCode::kInvalidArgument);
}

TEST(Options, RmAsksUnlessToldNotTo) {
  EXPECT_FALSE(parse<RmCommand>({"rm", "a/b"}).yes);
  EXPECT_TRUE(parse<RmCommand>({"rm", "--yes", "m.trtmc"}).yes);
  EXPECT_EQ(parse<ListCommand>({"list"}).folder, ".");
}

TEST(Options, AnUnknownCommandNamesTheKnownOnes) {
  EXPECT_EQ(
      refusal({"juggle", "m"}).hint,
      "commands are build, pull, run, chat, serve, prompt, tokenize, detokenize, score, verify, "
      "inspect, export, bench, list, rm, version");
}

TEST(Options, AnOptionTwiceIsRefused) {
  EXPECT_EQ(refusal({"run", "m", "--seed", "1", "--seed", "2"}).message,
            "--seed: given more than once");
}

TEST(Options, MissingThingsAreNamed) {
  EXPECT_EQ(refusal({}).message, "no command was given");
  EXPECT_EQ(refusal({"run"}).message, "bundle is missing");
  EXPECT_EQ(refusal({"build", "x"}).message, "--output is missing");
  EXPECT_EQ(refusal({"run", "m", "--stop"}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({"run", "m", "a", "b"}).message, "unexpected argument \"b\"");
}

TEST(Options, ADryRunNeedsNoOutput) {
  EXPECT_TRUE(parse<BuildCommand>({"build", "x", "--dry-run"}).dry_run);
}

TEST(Options, BuildReadsItsOptions) {
  const auto build = parse<BuildCommand>(
      {"build", "src", "-o", "out.trtmc", "--context", "131072", "--rope-scaling", "yarn:2.0"});
  EXPECT_EQ(build.output, "out.trtmc");
  EXPECT_EQ(build.build.context_length, 131072);
  EXPECT_EQ(build.build.yarn_factor, 2.0);
  EXPECT_EQ(refusal({"build", "s", "-o", "o", "--rope-scaling", "linear:2"}).code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(build.build.quantization, "none");
  EXPECT_EQ(parse<BuildCommand>({"build", "s", "-o", "o", "--quant", "q4"}).build.quantization,
            "q4");
  EXPECT_EQ(refusal({"build", "s", "-o", "o", "--quant", "q99"}).code, ErrorCode::kInvalidArgument);
}

TEST(Options, VerifyComparesBackendsOnlyWhenAsked) {
  const Settings settings = settings_of({{"TRTMC_BACKEND", "cpu"}});
  EXPECT_FALSE(parse<VerifyCommand>({"verify", "m"}, settings).compare_with_reference);
  EXPECT_TRUE(parse<VerifyCommand>({"verify", "m", "--backend", "cpu"}).compare_with_reference);
  EXPECT_EQ(refusal({"verify", "m", "--threads", "2"}).message,
            "--threads has no effect without --backend or --goldens");
}

TEST(Options, ServeTakesBundlesWithAndWithoutNames) {
  const auto serve =
      parse<ServeCommand>({"serve", "a.trtmc", "b=x/c=d.trtmc", "./e=f", "/g=h", "--port", "0"});
  std::string bundles;
  for (const NamedBundle& bundle : serve.service.bundles) {
    bundles += bundle.name + ":" + bundle.path.string() + " ";
  }
  EXPECT_EQ(bundles, ":a.trtmc b:x/c=d.trtmc :./e=f :/g=h ");
  EXPECT_EQ(serve.service.http.port, 0);
  EXPECT_EQ(serve.service.http.host, "127.0.0.1");
  EXPECT_EQ(refusal({"serve"}).message, "bundle is missing");
  EXPECT_EQ(refusal({"serve", "=x"}).message, "bundle: \"=x\", expected BUNDLE or NAME=BUNDLE");
  EXPECT_EQ(refusal({"serve", "x="}).message, "bundle: \"x=\", expected BUNDLE or NAME=BUNDLE");
  EXPECT_EQ(refusal({"serve", "\xff=x"}).message, "bundle: the name before \"=\" is not UTF-8");
}

TEST(Options, ServeReadsItsLimits) {
  const auto serve = parse<ServeCommand>(
      {"serve", "m", "--max-queue", "7", "--max-body", "2MiB", "--request-timeout", "0",
       "--drain-seconds", "5", "--cors-origin", "*", "--cors-origin", "https://a.example",
       "--log-format", "json", "--speculate"},
      settings_of({{"TRTMC_MAX_CONNECTIONS", "9"}, {"TRTMC_HOST", "::1"}}));
  EXPECT_EQ(serve.service.engine.max_queued, 7);
  EXPECT_EQ(serve.service.http.max_body_bytes, size_t{2} << 20);
  EXPECT_EQ(serve.service.http.request_timeout.count(), 0);
  EXPECT_EQ(serve.drain, std::chrono::seconds(5));
  EXPECT_EQ(serve.service.http.cors_origins, (std::vector<std::string>{"*", "https://a.example"}));
  EXPECT_EQ(serve.service.http.max_connections, 9);
  EXPECT_EQ(serve.service.http.host, "::1");
  EXPECT_EQ(serve.service.request_log, RequestLogFormat::kJson);
  EXPECT_TRUE(serve.service.engine.speculate);
  EXPECT_EQ(serve.log.format, LogFormat::kJson);
  EXPECT_EQ(refusal({"serve", "m", "--port", "65536"}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({"serve", "m", "--max-body", "0"}).message,
            "--max-body: \"0\", expected a size from 1 to 1073741824 bytes");
  EXPECT_EQ(refusal({"serve", "m", "--tls-key", "k"}).message,
            "--tls-key is given without --tls-cert");
  EXPECT_EQ(refusal({"serve", "m", "--cors-origin", "a.example"}).code,
            ErrorCode::kInvalidArgument);
}

TEST(Options, ServeTakesAnAddressAsItStandsInAUrl) {
  EXPECT_EQ(parse<ServeCommand>({"serve", "m", "--host", "[::1]"}).service.http.host, "::1");
}

TEST(Options, TheEnvironmentMayNameSeveralOrigins) {
  const auto serve = parse<ServeCommand>(
      {"serve", "m"}, settings_of({{"TRTMC_CORS_ORIGIN", "https://a.example  http://b:1"},
                                   {"TRTMC_SPECULATE", "1"}}));
  EXPECT_EQ(serve.service.http.cors_origins, (Arguments{"https://a.example", "http://b:1"}));
  EXPECT_TRUE(serve.service.engine.speculate);
  EXPECT_EQ(refusal({"serve", "m"}, settings_of({{"TRTMC_CORS_ORIGIN", "a.example"}})).message,
            "TRTMC_CORS_ORIGIN: \"a.example\", expected an origin such as "
            "https://chat.example.org, or *");
}

TEST(Options, EveryCommandHasHelp) {
  for (const char* name : {"build", "run", "chat", "serve", "prompt", "tokenize", "detokenize",
                           "score", "verify", "inspect", "version"}) {
    const std::string help = parse<HelpCommand>({name, "--help"}).text;
    EXPECT_NE(help.find(std::string("Usage: trtmc ") + name), help.npos) << help;
    EXPECT_EQ(parse<HelpCommand>({"help", name}).text, help);
  }
  EXPECT_NE(parse<HelpCommand>({"--help"}).text.find("inspect"), std::string::npos);
}

}  // namespace
}  // namespace trtmc
