// A bundle with everything that is made from it, built in the order in which the parts depend on
// each other.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "bundle/bundle.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace trtmc {

struct LoadOptions {
  std::string backend = "auto";
  ExecutorOptions executor;
};

// What it takes to run a model, borrowed.
struct EngineModel {
  Executor* executor = nullptr;
  const Tokenizer* tokenizer = nullptr;  // Null: answers have ids, but no text.
  int vocab_size = 0;
  int context_length = 0;  // Tokens a sequence may have.

  // Tokens that fit the context and the KV memory.
  int longest_sequence() const;
};

// Throws kInvalidArgument naming `what` and the id unless every id is one of the vocabulary.
void check_ids(std::span<const TokenId> ids, std::string_view what, int vocab_size);

class LoadedModel {
 public:
  // Throws what Bundle, Tokenizer, ChatTemplate, find_backend and Backend::load throw.
  LoadedModel(const std::filesystem::path& bundle, const LoadOptions& options);

  const Bundle& bundle() const { return bundle_; }
  const Tokenizer& tokenizer() const;         // Throws kUnsupported if the bundle has none.
  const ChatTemplate& chat_template() const;  // Throws kUnsupported if the bundle has none.
  bool has_tokenizer() const { return tokenizer_.has_value(); }
  bool has_chat_template() const { return chat_template_.has_value(); }
  Executor& executor() const { return *executor_; }
  const Backend& backend() const { return *backend_; }
  int context_length() const { return context_length_; }  // Tokens a sequence may have.
  EngineModel engine_model() const;

 private:
  Bundle bundle_;  // Declared in this order so that they die in reverse.
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  const Backend* backend_;
  std::unique_ptr<Executor> executor_;
  int context_length_;
};

}  // namespace trtmc
