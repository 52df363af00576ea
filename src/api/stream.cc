#include <utility>

#include "api/generation_request.h"
#include "api/handles.h"

namespace trtmc {

Stream::Stream(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  Stream old(std::move(*this));  // Dies as a stream does.
  impl_ = std::move(other.impl_);
  return *this;
}

Stream::~Stream() {
  if (!impl_) return;
  try {
    impl_->end();
  } catch (...) {
    // There is no memory to record the answer, and nobody to tell.
    return;
  }
}

std::optional<Delta> Stream::next() {
  return as_error([&] {
    try {
      std::optional<Delta> delta = impl_->stream.next();
      if (!delta) impl_->end();
      return delta;
    } catch (...) {
      if (impl_->stream.has_ended()) impl_->end();
      throw;
    }
  });
}

Answer Stream::read(const std::function<void(const Delta&)>& on_delta) {
  while (const std::optional<Delta> delta = next()) {
    if (on_delta) on_delta(*delta);
  }
  return answer();
}

const Answer& Stream::answer() const noexcept { return impl_->stream.answer(); }

void Stream::cancel() noexcept { impl_->stream.cancel(); }

std::string_view finish_reason(const Answer& answer) noexcept {
  if (answer.finish == FinishReason::kStop && !answer.tool_calls.empty()) return "tool_calls";
  return to_string(answer.finish);
}

Stream ask_model(std::shared_ptr<Model::Impl> model, Question question,
                 const GenerationOptions& options, std::function<void(const Answer&)> on_end) {
  GenerationRequest request =
      make_request(model->loaded.bundle().manifest(), options, std::move(question.ids));
  Engine& engine = model->engine;
  return Stream(std::unique_ptr<Stream::Impl>(new Stream::Impl{
      std::move(model), AnswerStream(engine, std::move(request), std::move(question.parser)),
      std::move(on_end)}));
}

}  // namespace trtmc
