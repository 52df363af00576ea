// Answers to completions as OpenAI's clients read them:
// https://platform.openai.com/docs/api-reference/completions
#pragma once

#include <memory>
#include <vector>

#include "server/completion_request.h"
#include "server/exchange.h"
#include "server/generation_task.h"

namespace trtmc {

// What the answer's shape depends on.
struct CompletionAnswerOptions {
  std::shared_ptr<const ServedModel> model;
  std::vector<CompletionPrompt> prompts;
  int n = 1;  // Answers to each.
  bool echo = false;
  bool is_empty = false;  // What comes behind the prompt is left out.
  bool logprobs = false;
  bool keep_special = false;  // Special tokens show in the text.
  StreamFields stream;
};

// One "text_completion" or a stream of them.
std::unique_ptr<AnswerWriter> make_completion_writer(std::shared_ptr<Exchange> exchange,
                                                     CompletionAnswerOptions options);

}  // namespace trtmc
