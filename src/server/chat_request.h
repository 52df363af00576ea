// What a client of POST /v1/chat/completions asks for.
#pragma once

#include <optional>

#include "base/json.h"
#include "bundle/manifest.h"
#include "server/request_fields.h"
#include "server/sampling_fields.h"
#include "text/chat_template.h"

namespace trtmc {

struct ChatRequest {
  ChatInput input;
  bool parse_tools = false;         // Tool calls in the answer are calls, else they are content.
  bool parallel_tool_calls = true;  // More than one of them.
  bool logprobs = false;
  SamplingFields sampling;  // With the options' max_tokens and logprobs.
  StreamFields stream;
};

// The conversation alone, as the model's template reads it: messages, tools, add_generation_prompt,
// chat_template_kwargs, reasoning_effort and date. Throws as read_chat_request().
ChatInput read_chat_input(const JsonCursor& request, const Manifest& manifest);

// Reads a request of the model that `manifest` describes. Fields that are unknown and those without
// meaning here are ignored; throws a FieldError for what is wrong or can't be done.
ChatRequest read_chat_request(const JsonCursor& request, const Manifest& manifest);

}  // namespace trtmc
