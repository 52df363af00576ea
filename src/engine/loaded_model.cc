#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/backend_loader.h"
#include "base/error.h"

namespace trtmc {
namespace {

std::optional<Tokenizer> make_tokenizer(const Bundle& bundle) {
  if (!bundle.find(kTokenizerSection)) return std::nullopt;
  return with_context(bundle.path().string(), [&] { return Tokenizer(bundle.tokenizer_tables()); });
}

std::optional<ChatTemplate> make_chat_template(const Bundle& bundle) {
  const auto source = bundle.chat_template();
  if (!source) return std::nullopt;
  return with_context(bundle.path().string() + ": chat template",
                      [&] { return ChatTemplate(*source, bundle.manifest().special_tokens); });
}

}  // namespace

int EngineModel::longest_sequence() const {
  const Limits limits = executor->limits();
  const int64_t positions = int64_t{limits.num_blocks} * limits.block_size;
  return static_cast<int>(std::min<int64_t>(context_length, positions));
}

void check_ids(std::span<const TokenId> ids, std::string_view what, int vocab_size) {
  for (const TokenId id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} is no token of a vocabulary of {}", what, id, vocab_size));
  }
}

LoadedModel::LoadedModel(const std::filesystem::path& bundle, const LoadOptions& options)
    : bundle_(bundle),
      tokenizer_(make_tokenizer(bundle_)),
      chat_template_(make_chat_template(bundle_)),
      backend_(&find_backend(options.backend, bundle_.manifest())),
      executor_(backend_->load(bundle_, options.executor)),
      context_length_(options.executor.context_length > 0 ? options.executor.context_length
                                                          : bundle_.spec().context_length) {}

EngineModel LoadedModel::engine_model() const {
  return {.executor = executor_.get(),
          .tokenizer = tokenizer_ ? &*tokenizer_ : nullptr,
          .vocab_size = bundle_.spec().vocab_size,
          .context_length = context_length_};
}

const Tokenizer& LoadedModel::tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: the bundle has no tokenizer, so it takes token ids only",
                          bundle_.path().string()));
}

const ChatTemplate& LoadedModel::chat_template() const {
  if (chat_template_) return *chat_template_;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: the bundle has no chat template, since its checkpoint has none",
                          bundle_.path().string()),
              "give the prompt as raw text");
}

}  // namespace trtmc
