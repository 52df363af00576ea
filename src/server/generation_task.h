// Answers on their way from an engine to a client: events in, deltas to whoever writes them down
// for the client's dialect.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/answer_builder.h"
#include "server/api_error.h"
#include "server/event_pump.h"
#include "server/exchange.h"
#include "server/model_catalogue.h"

namespace trtmc {

// A dialect's half: makes of answers what its clients expect, in pieces or at the end. Used by one
// thread at a time.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // The requests are with the engine: nothing of them will be refused any more. The first call,
  // unless that is fail().
  virtual void begin() = 0;
  // How likely the tokens of prompt number `prompt` are, before its first token, if that was asked.
  virtual void score_prompt(int prompt, const PromptScores& scores) { (void)prompt, (void)scores; }
  // A token, or text that was held back, of answer `choice`; counted over all prompts.
  virtual void add(int choice, const Delta& delta) = 0;
  // The stop token that ended the answer, of which nothing shows; before end_choice().
  virtual void add_stop_token(int choice, const Token& token) { (void)choice, (void)token; }
  // An answer is complete. Its `usage` is not set, nor what else its tokens could have been.
  virtual void end_choice(int choice, const Answer& answer) = 0;
  // All answers are; the last call.
  virtual void end(const Usage& usage) = 0;
  // Instead of what is left; the last call.
  virtual void fail(const ApiError& error) = 0;
};

// What a dialect has made of a client's request.
struct GenerationJob {
  std::shared_ptr<ServedModel> model;
  std::vector<GenerationRequest> requests;  // One for each prompt.
  std::optional<OutputParser> parser;       // Of every answer; none: all text is content.
  std::unique_ptr<AnswerWriter> writer;
};

// Submits the job's requests and sees to it that the writer gets their answers, on the pump's
// thread; a client that goes cancels them. Throws what Engine::submit throws; nothing has been
// written then.
void start_generation(EventPump& pump, const std::shared_ptr<Exchange>& exchange,
                      GenerationJob job);

}  // namespace trtmc
