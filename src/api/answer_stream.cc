#include "api/answer_stream.h"

#include <utility>

#include "base/error.h"

namespace trtmc {

AnswerStream::AnswerStream(Engine& engine, GenerationRequest request,
                           std::optional<OutputParser> parser)
    : builder_(std::move(parser)), stream_(engine.submit(std::move(request))) {}

std::optional<Delta> AnswerStream::next() {
  if (ended_) return std::nullopt;
  while (std::optional<TokenEvent> event = stream_.next()) {
    if (event->finish == FinishReason::kError) {
      ended_ = true;
      const Error error(event->error_code, event->error);
      builder_.take(std::move(*event));
      throw error;
    }
    Delta delta = builder_.take(std::move(*event));
    if (delta.token || delta.has_text()) return delta;
  }
  ended_ = true;
  Delta rest = builder_.finish();
  builder_.answer().usage = stream_.usage();
  if (rest.has_text()) return rest;
  return std::nullopt;
}

}  // namespace trtmc
