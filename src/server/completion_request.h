// What a client of POST /v1/completions asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "server/request_fields.h"
#include "server/sampling_fields.h"

namespace trtmc {

// One prompt, by its tokens and by its text, which is valid UTF-8.
struct CompletionPrompt {
  std::string field;  // "prompt", "prompt[1]"
  std::vector<TokenId> ids;
  std::string text;
};

struct CompletionRequest {
  std::vector<CompletionPrompt> prompts;  // At least one; each has a token at least.
  bool echo = false;                      // Answers begin with the prompt.
  bool is_empty = false;                  // No token is wanted (max_tokens 0), only the prompt's.
  std::optional<int> logprobs;
  SamplingFields sampling;  // With the options' max_tokens, at least 1, and logprobs.
  StreamFields stream;
};

// As read_chat_request(); a prompt that is a text, and logprobs, need the model's tokenizer. Of
// `model` nothing else is read but the size of its vocabulary.
CompletionRequest read_completion_request(const JsonCursor& request, const EngineModel& model);

}  // namespace trtmc
