// From a conversation to the ids that a model reads.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "base/json.h"
#include "bundle/bundle.h"
#include "cli/options.h"
#include "text/chat_template.h"

namespace trtmc {

// The bundle's template. Throws kUnsupported with a hint if it has none.
ChatTemplate open_chat_template(const Bundle& bundle);

// The prompt. An error of the template says that it is one.
std::string render_prompt(const ChatTemplate& chat_template, const ChatInput& input);

// {"role": role, "content": content}
Json message(std::string_view role, std::string_view content);

// A conversation as the options of `run` and `chat` describe it. `tools` is an array or null.
// Throws kUnsupported for reasoning or tools if the model has no markers for them.
ChatInput chat_input(const Manifest& manifest, const ChatOptions& options, Json::Array messages,
                     Json tools);

}  // namespace trtmc
