// What the handles of the public interface hold.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/answer_stream.h"
#include "api/question.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "trtmc/trtmc.h"

namespace trtmc {

// Runs `body`; whatever leaves it leaves as an Error.
template <typename Body>
decltype(auto) as_error(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    throw;
  } catch (...) {
    throw current_error();
  }
}

struct Model::Impl {
  Impl(const std::string& path, const LoadOptions& options)
      : loaded(path, options), engine(loaded, {}) {}

  LoadedModel loaded;
  Engine engine;  // Uses `loaded`, so it dies first.
};

struct Stream::Impl {
  std::shared_ptr<Model::Impl> model;  // Kept alive.
  AnswerStream stream;
  std::function<void(const Answer&)> on_end;  // Once, at the end or when the stream dies.

  void end() {
    if (const auto call = std::exchange(on_end, {})) call(stream.answer());
  }
};

// A stream of the answer to `question`.
Stream ask_model(std::shared_ptr<Model::Impl> model, Question question,
                 const GenerationOptions& options, std::function<void(const Answer&)> on_end = {});

}  // namespace trtmc
