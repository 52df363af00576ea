// A bundle with everything that is made from it, built in the order in which the parts depend on
// each other.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "bundle/bundle.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace trtmc {

struct LoadOptions {
  std::string backend = "auto";
  ExecutorOptions executor;
};

class LoadedModel {
 public:
  LoadedModel(const std::filesystem::path& bundle, const LoadOptions& options);

  const Bundle& bundle() const { return bundle_; }
  const Tokenizer& tokenizer() const;         // Throws kUnsupported if the bundle has none.
  const ChatTemplate& chat_template() const;  // Throws kUnsupported if the bundle has none.
  bool has_chat_template() const { return chat_template_.has_value(); }
  Executor& executor() const { return *executor_; }
  const Backend& backend() const { return *backend_; }

 private:
  Bundle bundle_;  // Declared in this order so that they die in reverse.
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  const Backend* backend_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace trtmc
