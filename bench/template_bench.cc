// Times SmolLM3's chat template: what a server does for each request before the tokenizer.
//
// template_bench [--benchmark_filter=…], from the root of the repository.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace trtmc {
namespace {

constexpr const char* kTemplate = "tests/data/smollm3-3b/chat_template.jinja";

Json message(std::string_view role, std::string content) {
  Json result;
  result.set("role", std::string(role));
  result.set("content", std::move(content));
  return result;
}

// A system message and turns of about 300 bytes, every other one with its reasoning.
ChatInput conversation(int64_t num_messages) {
  ChatInput input;
  input.local_time = parse_date("2026-09-04");
  Json::Array messages = {message("system", "You are terse. /think")};
  for (int64_t i = 1; i < num_messages; ++i) {
    const std::string text(300, static_cast<char>('a' + i % 26));
    messages.push_back(i % 2 == 1 ? message("user", text)
                                  : message("assistant", "<think>\nWell.\n</think>\n" + text));
  }
  input.messages = std::move(messages);
  return input;
}

void parse_template(benchmark::State& state) {
  const std::string source = read_file(kTemplate);
  for (auto _ : state) benchmark::DoNotOptimize(ChatTemplate(source));
}

void render(benchmark::State& state) {
  const ChatTemplate chat(read_file(kTemplate));
  const ChatInput input = conversation(state.range(0));
  size_t bytes = 0;
  for (auto _ : state) bytes += chat.render(input).size();
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

BENCHMARK(parse_template)->Unit(benchmark::kMicrosecond);
BENCHMARK(render)->Arg(2)->Arg(50)->Arg(500)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trtmc

BENCHMARK_MAIN();
