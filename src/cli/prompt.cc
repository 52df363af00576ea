#include "cli/prompt.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"

namespace trtmc {

ChatTemplate open_chat_template(const Bundle& bundle) {
  const auto source = bundle.chat_template();
  if (!source) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the model has no chat template", bundle.path().string()),
                "use `trtmc run --raw`, or build it with --chat-template FILE");
  }
  return with_context("chat template",
                      [&] { return ChatTemplate(*source, bundle.manifest().special_tokens); });
}

std::string render_prompt(const ChatTemplate& chat_template, const ChatInput& input) {
  return with_context("chat template", [&] { return chat_template.render(input); });
}

Json message(std::string_view role, std::string_view content) {
  Json json;
  json.set("role", role);
  json.set("content", content);
  return json;
}

ChatInput chat_input(const Manifest& manifest, const ChatOptions& options, Json::Array messages,
                     Json tools) {
  if (options.think && manifest.markers.think_open.empty()) {
    throw Error(ErrorCode::kUnsupported, "the model has no reasoning to turn on or off",
                "leave --think and --no-think out");
  }
  if (!tools.is_null() && manifest.markers.tool_open.empty()) {
    throw Error(ErrorCode::kUnsupported, "the model has no format for tool calls",
                "leave --tools out");
  }
  if (options.system) messages.insert(messages.begin(), message("system", *options.system));
  ChatInput input;
  input.messages = std::move(messages);
  input.tools = std::move(tools);
  if (options.think) input.template_kwargs.emplace_back("enable_thinking", *options.think);
  input.local_time = options.date ? *options.date : local_time_now();
  return input;
}

}  // namespace trtmc
