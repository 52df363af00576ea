// What a bundle takes from a checkpoint's text files. Private to this folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace trtmc {

struct TokenizerAsset {
  std::vector<std::byte> tables;
  std::string unicode_version;
};

// tokenizer.json compiled, or nothing where there is none. Throws if it has ids that the model does
// not.
std::optional<TokenizerAsset> read_tokenizer(const Checkpoint& checkpoint, int vocab_size);

// The template of the file `override_path` if given, else of chat_template.jinja, else of
// tokenizer_config.json, or nothing. Throws, naming the file, for one that does not parse.
std::optional<std::string> read_chat_template(
    const Checkpoint& checkpoint, const std::optional<std::filesystem::path>& override_path);

// The tokens that a chat template sees by name ("bos_token": "<s>"), as Transformers' property
// special_tokens_map has them: of tokenizer_config.json, and of special_tokens_map.json where
// tokenizer_config.json has no added_tokens_decoder. Throws, naming file and key, for one that is
// no text.
std::map<std::string, std::string> read_special_tokens(const Checkpoint& checkpoint);

// "license:" of the front matter of README.md (a model card's metadata), or "".
std::string read_licence(const Checkpoint& checkpoint);

}  // namespace trtmc
