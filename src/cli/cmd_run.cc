#include <fmt/format.h>

#include <cmath>

#include "api/generation_request.h"
#include "api/question.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/prompt.h"
#include "server/token_json.h"

namespace trtmc {
namespace {

Json read_tools(const std::filesystem::path& file) {
  if (file.empty()) return {};
  Json tools = read_json(file, "tools");
  if (tools.array() == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}, expected a JSON array of tools",
                                                         file.string(), tools.kind_name()));
  }
  for (const JsonCursor& tool : JsonCursor(tools, file.string()).elements()) tool.members();
  return tools;
}

std::string read_prompt(const RunCommand& command) {
  std::string text = read_text(command.prompt, "the prompt");
  if (const auto offset = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the prompt: byte {} is not UTF-8", *offset));
  }
  if (text.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the prompt is empty",
                "give it as an argument, with --file, or on standard input");
  }
  return text;
}

Question make_question(const RunCommand& command, const LoadedModel& model) {
  if (command.prompt_ids) {
    if (command.prompt_ids->empty()) {
      throw Error(ErrorCode::kInvalidArgument, "--prompt-ids: empty, expected at least one id");
    }
    return {*command.prompt_ids, {}};
  }
  if (!model.has_chat_template() && command.chat_requested) open_chat_template(model.bundle());
  if (!command.raw && !model.has_chat_template()) {
    log_debug("the model has no chat template: the prompt is used as it is");
  }
  if (command.raw || !model.has_chat_template()) {
    return {model.tokenizer().encode(read_prompt(command)), {}};
  }
  return chat_question(
      model, chat_input(model.bundle().manifest(), command.chat,
                        {message("user", read_prompt(command))}, read_tools(command.tools)));
}

double rounded(double milliseconds) { return std::round(milliseconds * 1000) / 1000; }

// OpenAI's shape; the arguments are the model's own text.
Json tool_calls_json(const std::vector<ToolCall>& calls) {
  Json::Array array;
  for (size_t i = 0; i < calls.size(); ++i) {
    Json function;
    function.set("name", calls[i].name);
    function.set("arguments", calls[i].arguments);
    Json json;
    json.set("id", fmt::format("call_{}", i));
    json.set("type", "function");
    json.set("function", std::move(function));
    array.push_back(std::move(json));
  }
  return array;
}

// OpenAI's {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}, …]}, for every token.
Json logprobs_json(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  Json::Array content;
  for (const Token& token : tokens) content.push_back(chat_token_json(tokenizer, token));
  Json json;
  json.set("content", std::move(content));
  return json;
}

Json usage_json(const Usage& usage) {
  Json json;
  json.set("prompt_tokens", usage.prompt_tokens);
  json.set("completion_tokens", usage.completion_tokens);
  json.set("cached_tokens", usage.cached_tokens);
  return json;
}

Json timings_json(const Answer& answer, double load_ms) {
  Json json;
  json.set("load_ms", rounded(load_ms));
  json.set("prefill_ms", rounded(answer.prefill_ms));
  json.set("decode_ms", rounded(answer.decode_ms));
  json.set("ttft_ms", rounded(load_ms + answer.prefill_ms));
  return json;
}

// The names and their order are stable: scripts rely on them.
Json answer_json(const LoadedModel& model, const Answer& answer, const GenerationRequest& request,
                 double load_ms) {
  Json::Array ids;
  for (const Token& token : answer.tokens) ids.push_back(token.id);
  Json json;
  json.set("text", answer.content);
  json.set("reasoning", answer.reasoning);
  json.set("tool_calls", tool_calls_json(answer.tool_calls));
  json.set("prompt_ids", Json::Array(request.prompt.begin(), request.prompt.end()));
  json.set("ids", std::move(ids));
  json.set("finish_reason", finish_reason(answer));
  json.set("usage", usage_json(answer.usage));
  json.set("timings", timings_json(answer, load_ms));
  json.set("seed", request.sampling.seed);
  if (request.logprobs) json.set("logprobs", logprobs_json(model.tokenizer(), answer.tokens));
  return json;
}

void log_speed(const Answer& answer, double load_ms) {
  const auto decoded = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
  log_debug("loaded in {:.0f} ms, {} prompt tokens in {:.0f} ms, {} more at {:.1f} tokens/s",
            load_ms, answer.usage.prompt_tokens, answer.prefill_ms, decoded,
            answer.decode_ms > 0 ? 1000 * static_cast<double>(decoded) / answer.decode_ms : 0);
}

}  // namespace

void execute(const RunCommand& command, Console& console) {
  console.configure_log(command.log);
  const auto start = std::chrono::steady_clock::now();
  const LoadedModel model(command.bundle, command.load);
  const double load_ms = milliseconds_between(start, std::chrono::steady_clock::now());
  // Logprobs show text: refused now, not after the answer.
  if (command.sampling.logprobs) model.tokenizer();
  Question question = make_question(command, model);
  const GenerationRequest request =
      make_request(model.bundle().manifest(), command.sampling, std::move(question.ids));
  Engine engine(model, command.engine);
  AnswerPrinter printer(console);
  const Answer answer =
      generate(engine, request, std::move(question.parser), [&](const Delta& delta) {
        if (!command.json) printer.show(delta);
      });
  if (command.json) {
    console.print_json(answer_json(model, answer, request, load_ms));
  } else {
    printer.finish();
  }
  log_speed(answer, load_ms);
  if (answer.finish == FinishReason::kCancelled) throw Interrupted();
}

}  // namespace trtmc
