#include "checkpoint/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf_pretokenizers.h"

namespace trtmc {
namespace {

// Of tokenizer.ggml.token_type.
constexpr int64_t kControl = 3, kUserDefined = 4, kUnused = 5;

struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;
  size_t num_model = 0;  // Those that the BPE model has; added ones follow.

  bool is_added(size_t id) const { return types[id] == kControl || types[id] == kUserDefined; }
};

Vocabulary read_vocabulary(const GgufMetadata& metadata) {
  Vocabulary vocabulary;
  auto tokens = metadata.find_texts("tokenizer.ggml.tokens");
  if (!tokens) throw Error(ErrorCode::kCorrupt, "key \"tokenizer.ggml.tokens\" is missing");
  vocabulary.tokens = *std::move(tokens);
  // Without types all are normal.
  vocabulary.types = metadata.find_integers("tokenizer.ggml.token_type")
                         .value_or(std::vector<int64_t>(vocabulary.tokens.size(), 1));
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens",
                            vocabulary.types.size(), vocabulary.tokens.size()));
  }
  while (!vocabulary.types.empty() && vocabulary.types.back() == kUnused) {
    vocabulary.types.pop_back();
    vocabulary.tokens.pop_back();
  }
  if (vocabulary.tokens.empty()) {
    throw Error(ErrorCode::kCorrupt, "tokenizer.ggml.tokens has no token that is used");
  }
  size_t id = vocabulary.tokens.size();
  while (id > 0 && vocabulary.is_added(id - 1)) --id;
  vocabulary.num_model = id;
  return vocabulary;
}

Json bpe_model(const GgufMetadata& metadata, const Vocabulary& vocabulary, bool ignore_merges) {
  Json::Object vocab;
  vocab.reserve(vocabulary.num_model);
  for (size_t id = 0; id < vocabulary.num_model; ++id) {
    vocab.emplace_back(std::string(vocabulary.tokens[id]), Json(static_cast<int64_t>(id)));
  }
  const auto merges = metadata.find_texts("tokenizer.ggml.merges");
  if (!merges) throw Error(ErrorCode::kCorrupt, "key \"tokenizer.ggml.merges\" is missing");
  Json model;
  model.set("type", "BPE");
  model.set("ignore_merges", ignore_merges);
  model.set("vocab", std::move(vocab));
  model.set("merges", Json::Array(merges->begin(), merges->end()));
  return model;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json::Array added;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    Json token;
    token.set("id", static_cast<int64_t>(id));
    token.set("content", vocabulary.tokens[id]);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
      token.set(flag, false);
    token.set("special", vocabulary.types[id] == kControl);
    added.push_back(std::move(token));
  }
  return added;
}

// The token that `key` names stands around every text.
std::string_view read_special(const GgufMetadata& metadata, const Vocabulary& vocabulary,
                              std::string_view key) {
  const auto count = static_cast<int64_t>(vocabulary.tokens.size());
  return vocabulary.tokens[static_cast<size_t>(metadata.integer(key, 0, count - 1))];
}

Json special_piece(std::string_view token) {
  Json special;
  special.set("id", token);
  special.set("type_id", 0);
  Json piece;
  piece.set("SpecialToken", std::move(special));
  return piece;
}

Json special_entry(std::string_view token, int64_t id) {
  Json entry;
  entry.set("id", token);
  entry.set("ids", Json::Array{id});
  entry.set("tokens", Json::Array{token});
  return entry;
}

// TemplateProcessing with what stands in front of a text and behind it.
Json post_processor(const GgufMetadata& metadata, const Vocabulary& vocabulary, bool bos,
                    bool eos) {
  Json text;
  text.set("id", "A");
  text.set("type_id", 0);
  Json sequence;
  sequence.set("Sequence", std::move(text));
  Json::Array single{std::move(sequence)};
  Json specials = Json::Object{};
  const auto add = [&](std::string_view key, auto place) {
    const std::string_view token = read_special(metadata, vocabulary, key);
    single.insert(place(), special_piece(token));
    specials.set(token, special_entry(token, metadata.integer(key, 0, INT32_MAX)));
  };
  if (bos) add("tokenizer.ggml.bos_token_id", [&] { return single.begin(); });
  if (eos) add("tokenizer.ggml.eos_token_id", [&] { return single.end(); });
  Json processor;
  processor.set("type", "TemplateProcessing");
  processor.set("single", std::move(single));
  processor.set("special_tokens", std::move(specials));
  return processor;
}

// False where there is no tokenizer.
bool has_bpe(const GgufMetadata& metadata) {
  const auto model = metadata.find_text("tokenizer.ggml.model");
  if (!model || *model == "none" || *model == "no_vocab") return false;
  if (*model != "gpt2") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("tokenizer.ggml.model is \"{}\", which is not supported, expected "
                            "\"gpt2\", byte-level BPE",
                            *model));
  }
  return true;
}

}  // namespace

std::optional<Json> gguf_tokenizer(const GgufMetadata& metadata) {
  if (!has_bpe(metadata)) return std::nullopt;
  const GgufPretokenizer& pre =
      find_gguf_pretokenizer(metadata.find_text("tokenizer.ggml.pre").value_or("default"));
  const Vocabulary vocabulary = read_vocabulary(metadata);
  Json tokenizer;
  tokenizer.set("version", "1.0");
  tokenizer.set("added_tokens", added_tokens(vocabulary));
  tokenizer.set("normalizer", pre.normalizer.empty() ? Json() : Json::parse(pre.normalizer));
  tokenizer.set("pre_tokenizer", Json::parse(pre.pre_tokenizer));
  const bool bos = metadata.find_flag("tokenizer.ggml.add_bos_token").value_or(pre.adds_bos);
  const bool eos = metadata.find_flag("tokenizer.ggml.add_eos_token").value_or(false);
  if (bos || eos) {
    tokenizer.set("post_processor", post_processor(metadata, vocabulary, bos, eos));
  }
  tokenizer.set("decoder", Json::parse(R"({"type": "ByteLevel"})"));
  tokenizer.set("model", bpe_model(metadata, vocabulary, pre.ignore_merges));
  return tokenizer;
}

std::optional<Json> gguf_tokenizer_config(const GgufMetadata& metadata) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"bos_token", "bos_token_id"},
                                                            {"eos_token", "eos_token_id"},
                                                            {"unk_token", "unknown_token_id"},
                                                            {"pad_token", "padding_token_id"}};
  if (!has_bpe(metadata)) return std::nullopt;
  const Vocabulary vocabulary = read_vocabulary(metadata);
  Json config = Json::Object{};
  for (const auto& [name, key] : kNames) {
    // An id of a token that only pads the embedding names none.
    const auto id = metadata.find_integer(fmt::format("tokenizer.ggml.{}", key), 0, INT32_MAX);
    if (id && static_cast<size_t>(*id) < vocabulary.tokens.size())
      config.set(name, vocabulary.tokens[static_cast<size_t>(*id)]);
  }
  Json::Object decoder;
  const Json added = added_tokens(vocabulary);
  for (const Json& token : *added.array()) {
    decoder.emplace_back(fmt::to_string(*token.find("id")->integer()), token);
  }
  config.set("added_tokens_decoder", std::move(decoder));
  return config;
}

}  // namespace trtmc
