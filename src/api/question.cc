#include "api/question.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace trtmc {
namespace {

void require_tool_format(const Manifest& manifest, const Json& tools) {
  if (tools.is_null() || !manifest.markers.tool_open.empty()) return;
  throw Error(ErrorCode::kUnsupported, "the model has no format for tool calls",
              "leave the tools out");
}

}  // namespace

Json message(std::string_view role, std::string_view content) {
  Json json;
  json.set("role", role);
  json.set("content", content);
  return json;
}

Json to_json(const ToolCall& call) {
  Json json;
  json.set("name", call.name);
  try {
    json.set("arguments", Json::parse(call.arguments));
  } catch (const Error&) {  // A string of the model's, and no JSON within.
    json.set("arguments", call.arguments);
  }
  return json;
}

std::tm local_time_on(std::string_view date) {
  return date.empty() ? local_time_now() : parse_date(date);
}

ChatInput chat_input(const Manifest& manifest, const ChatOptions& options, Json::Array messages,
                     Json tools) {
  if (options.think && manifest.markers.think_open.empty()) {
    throw Error(ErrorCode::kUnsupported, "the model has no reasoning to turn on or off",
                "leave it at the model's default");
  }
  require_tool_format(manifest, tools);
  if (options.system) messages.insert(messages.begin(), message("system", *options.system));
  ChatInput input;
  input.messages = std::move(messages);
  input.tools = std::move(tools);
  if (options.think) input.template_kwargs.emplace_back("enable_thinking", *options.think);
  input.local_time = local_time_on(options.date);
  return input;
}

ChatInput chat_input(const Manifest& manifest, std::string_view conversation_json,
                     std::string_view date) {
  const Json json = with_context("conversation", [&] { return Json::parse(conversation_json); });
  return chat_input_of(manifest, json, date);
}

ChatInput chat_input_of(const Manifest& manifest, const Json& conversation, std::string_view date) {
  ChatInput input = chat_input_from_json(conversation, local_time_on(date));
  require_tool_format(manifest, input.tools);
  return input;
}

std::string render_prompt(const ChatTemplate& chat_template, const ChatInput& input) {
  return with_context("chat template", [&] { return chat_template.render(input); });
}

bool has_tools(const ChatInput& input) {
  return input.tools.array() != nullptr && !input.tools.array()->empty();
}

Question chat_question(const LoadedModel& model, const ChatInput& input) {
  return chat_question(model, render_prompt(model.chat_template(), input), has_tools(input));
}

Question chat_question(const LoadedModel& model, std::string_view prompt, bool parse_tools) {
  const OutputMarkers& markers = model.bundle().manifest().markers;
  return {model.tokenizer().encode(prompt),
          OutputParser(markers, OutputParser::start_for_prompt(markers, prompt), parse_tools)};
}

}  // namespace trtmc
