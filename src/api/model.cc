#include <utility>

#include "api/handles.h"
#include "engine/scoring.h"

namespace trtmc {
namespace {

KvType kv_type_of(const std::string& name) {
  if (const auto type = parse_kv_type(name)) return *type;
  throw Error(ErrorCode::kInvalidArgument,
              "kv_type: \"" + name + "\", expected f32, bf16, q8 or fp8");
}

void require_not_negative(const char* name, int value) {
  if (value >= 0) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(name) + ": " + std::to_string(value) +
                                               ", expected a number of at least 0");
}

LoadOptions load_options(const ModelOptions& options) {
  require_not_negative("threads", options.threads);
  require_not_negative("threads_batch", options.threads_batch);
  require_not_negative("context_length", options.context_length);
  LoadOptions load;
  load.backend = options.backend;
  load.executor.num_threads = options.threads;
  load.executor.num_threads_batch = options.threads_batch;
  load.executor.isa = options.cpu_isa;
  load.executor.context_length = options.context_length;
  load.executor.kv_memory_bytes = options.kv_memory_bytes;
  load.executor.kv_type = kv_type_of(options.kv_type);
  return load;
}

Score public_score(TextScore score, const std::vector<TokenId>& ids) {
  const double perplexity = score.perplexity();
  return {ids, std::move(score.token_logprobs), score.logprob_sum, perplexity};
}

}  // namespace

Model::Model(const std::string& path, const ModelOptions& options)
    : impl_(as_error([&] { return std::make_shared<Impl>(path, load_options(options)); })) {}

Model::Model(const Model&) noexcept = default;
Model& Model::operator=(const Model&) noexcept = default;
Model::~Model() = default;

ModelInfo Model::info() const {
  return as_error([&] {
    const LoadedModel& loaded = impl_->loaded;
    const Manifest& manifest = loaded.bundle().manifest();
    return ModelInfo{.family = manifest.family,
                     .source = manifest.source,
                     .source_revision = manifest.source_revision,
                     .licence = manifest.licence,
                     .vocab_size = manifest.spec.vocab_size,
                     .context_length = loaded.context_length(),
                     .stop_ids = manifest.stop_ids,
                     .has_tokenizer = loaded.has_tokenizer(),
                     .has_chat_template = loaded.has_chat_template(),
                     .has_reasoning = !manifest.markers.think_open.empty(),
                     .has_tools = !manifest.markers.tool_open.empty(),
                     .device = loaded.executor().description()};
  });
}

std::vector<TokenId> Model::tokenize(std::string_view text, const TokenizeOptions& options) const {
  return as_error([&] {
    return impl_->loaded.tokenizer().encode(
        text, {.add_special = options.add_special, .match_added = !options.plain_text});
  });
}

std::string Model::detokenize(const std::vector<TokenId>& ids, bool skip_special) const {
  return as_error([&] { return impl_->loaded.tokenizer().decode(ids, skip_special); });
}

std::string Model::render(std::string_view conversation_json, std::string_view date) const {
  return as_error([&] {
    const LoadedModel& loaded = impl_->loaded;
    return render_prompt(loaded.chat_template(),
                         chat_input(loaded.bundle().manifest(), conversation_json, date));
  });
}

Stream Model::chat(std::string_view conversation_json, const GenerationOptions& options,
                   std::string_view date) const {
  return as_error([&] {
    const LoadedModel& loaded = impl_->loaded;
    Question question =
        chat_question(loaded, chat_input(loaded.bundle().manifest(), conversation_json, date));
    return ask_model(impl_, std::move(question), options);
  });
}

Stream Model::complete(std::string_view text, const GenerationOptions& options) const {
  return complete(tokenize(text), options);
}

Stream Model::complete(const std::vector<TokenId>& ids, const GenerationOptions& options) const {
  return as_error([&] { return ask_model(impl_, {ids, {}}, options); });
}

Score Model::score(std::string_view text, int window) const {
  return score(tokenize(text), window);
}

Score Model::score(const std::vector<TokenId>& ids, int window) const {
  return as_error([&] {
    return public_score(score_tokens(impl_->engine, impl_->loaded.engine_model(), ids, window),
                        ids);
  });
}

}  // namespace trtmc
