// From a conversation or a text to what a model reads, and to how its text is then to be read.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "bundle/manifest.h"
#include "engine/loaded_model.h"
#include "text/chat_template.h"
#include "text/output_parser.h"
#include "trtmc/trtmc.h"

namespace trtmc {

struct Question {
  std::vector<TokenId> ids;
  std::optional<OutputParser> parser;  // Only for a prompt made by the chat template.
};

// {"role": role, "content": content}
Json message(std::string_view role, std::string_view content);

// {"name": …, "arguments": {…}}; arguments that are no JSON stand as a string.
Json to_json(const ToolCall& call);

// Noon of the day "2026-09-04", or now if `date` is empty. Throws kInvalidArgument.
std::tm local_time_on(std::string_view date);

// A conversation as `options` describe it, after the system message among them; options.tools are
// not read. `tools` is an array or null. Throws kUnsupported for reasoning or tools if the model
// has no markers for them, kInvalidArgument for the date.
ChatInput chat_input(const Manifest& manifest, const ChatOptions& options, Json::Array messages,
                     Json tools);

// A conversation in the JSON that render() of the public interface takes. Throws as that says.
ChatInput chat_input(const Manifest& manifest, std::string_view conversation_json,
                     std::string_view date);
ChatInput chat_input_of(const Manifest& manifest, const Json& conversation, std::string_view date);

// The prompt. An error of the template says that it is one.
std::string render_prompt(const ChatTemplate& chat_template, const ChatInput& input);

// Whether the conversation has tools, so that its answer may have calls.
bool has_tools(const ChatInput& input);

// Renders and tokenizes. Tool calls are parsed if the conversation has tools. Throws what the
// template, the tokenizer, and their absence throw.
Question chat_question(const LoadedModel& model, const ChatInput& input);
// The same of a prompt that render_prompt() has made.
Question chat_question(const LoadedModel& model, std::string_view prompt, bool parse_tools);

}  // namespace trtmc
