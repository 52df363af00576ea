// Answers of a chat as OpenAI's clients read them:
// https://platform.openai.com/docs/api-reference/chat
#pragma once

#include <memory>
#include <vector>

#include "server/chat_request.h"
#include "server/exchange.h"
#include "server/generation_task.h"
#include "text/output_parser.h"

namespace trtmc {

// What the answer's shape depends on.
struct ChatAnswerOptions {
  std::shared_ptr<const ServedModel> model;
  OutputParser parser;  // As it is at the start of every answer.
  int num_choices = 1;
  bool logprobs = false;
  bool keep_special = false;        // Special tokens show in the text.
  bool parallel_tool_calls = true;  // Else only the first call of an answer is passed on.
  StreamFields stream;
};

// One "chat.completion", or a stream of "chat.completion.chunk".
std::unique_ptr<AnswerWriter> make_chat_writer(std::shared_ptr<Exchange> exchange,
                                               ChatAnswerOptions options);

// How many of an answer's first tokens are reasoning or a marker around it, by the bytes of the
// tokens themselves.
int count_reasoning_tokens(const ChatAnswerOptions& options, const std::vector<Token>& tokens);

}  // namespace trtmc
