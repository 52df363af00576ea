#include "cli/answer.h"

#include <utility>

#include "api/answer_stream.h"
#include "api/question.h"
#include "cli/interrupts.h"

namespace trtmc {

Answer generate(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser,
                const ShowDelta& show) {
  AnswerStream stream(engine, std::move(request), std::move(parser));
  const InterruptScope interrupt([&] { stream.cancel(); });
  while (const std::optional<Delta> delta = stream.next()) show(*delta);
  return stream.answer();
}

void AnswerPrinter::show(const Delta& delta) {
  if (!delta.reasoning.empty() && !console_.quiet()) {
    console_.dim(delta.reasoning);
    in_reasoning_ = true;
  }
  if (delta.content.empty() && delta.tool_calls.empty()) return;
  if (in_reasoning_) console_.note("\n");
  in_reasoning_ = false;
  if (!delta.content.empty()) {
    console_.print(delta.content);
    at_line_start_ = delta.content.ends_with('\n');
  }
  for (const ToolCall& call : delta.tool_calls) {
    if (!at_line_start_) console_.print("\n");
    console_.print_json(to_json(call));
    at_line_start_ = true;
  }
}

void AnswerPrinter::finish() {
  if (in_reasoning_) console_.note("\n");
  if (!at_line_start_) console_.print("\n");
}

}  // namespace trtmc
