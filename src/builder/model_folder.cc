#include "builder/model_folder.h"

#include <utility>

#include "families/generation_defaults.h"
#include "families/model_family.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

TextFile json_file(std::string name, const Json& json) {
  return {std::move(name), json.dump(2) + "\n"};
}

// The id of the special token that the chat template calls `name`.
std::optional<TokenId> special_id(const Manifest& manifest, const Tokenizer& tokenizer,
                                  const std::string& name) {
  const auto found = manifest.special_tokens.find(name);
  return found == manifest.special_tokens.end() ? std::nullopt : tokenizer.find(found->second);
}

Json tokenizer_config(const Bundle& bundle) {
  Json config;
  config.set("tokenizer_class", "PreTrainedTokenizerFast");
  config.set("model_max_length", bundle.spec().context_length);
  config.set("clean_up_tokenization_spaces", false);
  Json extra;
  for (const auto& [name, token] : bundle.manifest().special_tokens) {
    (name.ends_with("_token") ? config : extra).set(name, token);
  }
  if (!extra.is_null()) config.set("extra_special_tokens", std::move(extra));
  return config;
}

void add_ids(const Manifest& manifest, const Tokenizer& tokenizer, Json& config) {
  for (const char* name : {"bos", "pad"}) {
    const auto id = special_id(manifest, tokenizer, std::string(name) + "_token");
    if (id) config.set(std::string(name) + "_token_id", *id);
  }
}

}  // namespace

std::vector<TextFile> model_text_files(const Bundle& bundle) {
  const Manifest& manifest = bundle.manifest();
  Json config = config_json(find_family(Json(), manifest.family), manifest.spec);
  Json generation = generation_config_json({manifest.stop_ids, manifest.default_sampling});
  if (!manifest.stop_ids.empty()) config.set("eos_token_id", *generation.find("eos_token_id"));
  std::vector<TextFile> files;
  if (bundle.find(kTokenizerSection) != nullptr) {
    const Tokenizer tokenizer(bundle.tokenizer_tables());
    add_ids(manifest, tokenizer, config);
    add_ids(manifest, tokenizer, generation);
    files.push_back({"tokenizer.json", decompile_tokenizer(bundle.tokenizer_tables())});
    files.push_back(json_file("tokenizer_config.json", tokenizer_config(bundle)));
  }
  files.push_back(json_file("config.json", config));
  files.push_back(json_file("generation_config.json", generation));
  if (const auto text = bundle.chat_template()) {
    files.push_back({"chat_template.jinja", std::string(*text)});
  }
  return files;
}

}  // namespace trtmc
