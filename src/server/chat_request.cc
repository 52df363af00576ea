#include "server/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "api/question.h"
#include "base/error.h"
#include "server/chat_messages.h"

namespace trtmc {
namespace {

constexpr int kMostTopLogprobs = 20;

constexpr UnsupportedField kUnsupported[] = {
    {"continue_final_message", "false"},
    {"chat_template"},
    {"documents", "[]"},
    {"echo", "false"},
};

constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};

// A tool in OpenAI's shape or, as the card of SmolLM3 has them, without the wrapper. The template
// prints what the client sent.
void check_tool(const JsonCursor& tool) {
  if (const auto type = tool.find_set("type"); type && type->string() != "function") {
    type->fail(fmt::format("{} is not supported, only function", type->json().dump()),
               ErrorCode::kUnsupported);
  }
  const auto function = tool.find_set("function");
  const JsonCursor name = (function ? *function : tool).at("name");
  if (name.string().empty()) name.fail("empty, expected the function's name");
}

void read_tools(const JsonCursor& request, const Manifest& manifest, Json& conversation) {
  const auto tools = request.find_set("tools");
  if (!tools || tools->elements().empty()) return;
  for (const JsonCursor& tool : tools->elements()) check_tool(tool);
  if (manifest.markers.tool_open.empty()) {
    tools->fail("the model has no format for tool calls", ErrorCode::kUnsupported);
  }
  conversation.set("tools", tools->json());
}

// Whether the model may call tools.
bool read_tool_choice(const JsonCursor& request) {
  const auto choice = request.find_set("tool_choice");
  if (!choice || choice->json() == Json("auto")) return true;
  if (choice->json() == Json("none")) return false;
  if (!choice->json().string() && !choice->json().object()) choice->string();  // Says what it is.
  choice->fail(
      fmt::format("{} is not supported, only \"none\" and \"auto\"", choice->json().dump()),
      ErrorCode::kUnsupported);
}

void read_effort(const JsonCursor& request, const Manifest& manifest, Json::Object& kwargs) {
  const auto effort = request.find_set("reasoning_effort");
  if (!effort) return;
  if (std::ranges::find(kEfforts, effort->string()) == std::end(kEfforts)) {
    effort->fail(fmt::format("{}, expected none, minimal, low, medium, high, xhigh or max",
                             effort->json().dump()));
  }
  const bool think = effort->string() != "none";
  if (manifest.markers.think_open.empty()) {
    if (think) effort->fail("the model has no reasoning", ErrorCode::kUnsupported);
    return;
  }
  const auto is_thinking = [](const Json::Member& member) {
    return member.first == "enable_thinking";
  };
  // What the template itself is told comes first.
  if (std::ranges::none_of(kwargs, is_thinking)) kwargs.emplace_back("enable_thinking", think);
}

// Tools that a template takes under SmolLM3's own name.
bool has_xml_tools(const ChatInput& input) {
  return std::ranges::any_of(input.template_kwargs, [](const Json::Member& member) {
    return member.first == "xml_tools" && member.second.array() && !member.second.array()->empty();
  });
}

void read_logprobs(const JsonCursor& request, ChatRequest& result) {
  result.logprobs = optional_flag(request, "logprobs");
  const auto top = optional_int(request, "top_logprobs", 0, kMostTopLogprobs);
  if (top && !result.logprobs) {
    request.at("top_logprobs").fail("given without \"logprobs\": true");
  }
  if (result.logprobs) result.sampling.options.logprobs = top.value_or(0);
}

int read_max_tokens(const JsonCursor& request) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto newer = optional_int(request, "max_completion_tokens", 1, kMost);
  const auto older = optional_int(request, "max_tokens", 1, kMost);
  return newer ? *newer : older.value_or(0);
}

}  // namespace

ChatInput read_chat_input(const JsonCursor& request, const Manifest& manifest) {
  refuse_unsupported(request, kUnsupported);
  Json conversation;
  conversation.set("messages", read_messages(required(request, "messages")));
  read_tools(request, manifest, conversation);
  for (const char* name : {"add_generation_prompt", "chat_template_kwargs"}) {
    if (const auto field = request.find_set(name)) conversation.set(name, field->json());
  }
  ChatInput input = chat_input_of(manifest, conversation, {});
  read_effort(request, manifest, input.template_kwargs);
  if (const auto date = request.find_set("date")) {
    try {
      input.local_time = parse_date(date->string());
    } catch (const FieldError&) {
      throw;
    } catch (const Error& error) {
      date->fail(error.what());
    }
  }
  return input;
}

ChatRequest read_chat_request(const JsonCursor& request, const Manifest& manifest) {
  ChatRequest result;
  result.input = read_chat_input(request, manifest);
  result.parse_tools =
      read_tool_choice(request) && (has_tools(result.input) || has_xml_tools(result.input));
  result.parallel_tool_calls = optional_flag(request, "parallel_tool_calls", true);
  result.sampling = read_sampling_fields(request, manifest.spec.vocab_size);
  result.sampling.options.max_tokens = read_max_tokens(request);
  read_logprobs(request, result);
  result.stream = read_stream_fields(request);
  return result;
}

}  // namespace trtmc
