#include "builder/text_assets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

constexpr std::string_view kTokenizerFile = "tokenizer.json";
constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";
constexpr std::string_view kSpecialTokensFile = "special_tokens_map.json";
constexpr std::string_view kTemplateFile = "chat_template.jinja";
constexpr uint64_t kMaxTemplateBytes = uint64_t{16} << 20;

struct NamedText {
  std::string name;  // For messages.
  std::string text;
};

// "chat_template" of tokenizer_config.json: a text, or a list of {"name", "template"} of which
// Transformers takes "default" unless asked for another.
std::optional<NamedText> template_of_tokenizer_config(const std::string& text) {
  const Json config = with_context(kTokenizerConfigFile, [&] { return Json::parse(text); });
  const auto value =
      JsonCursor(config, std::string(kTokenizerConfigFile)).find_set("chat_template");
  if (!value) return std::nullopt;
  if (value->json().array() == nullptr) return NamedText{value->path(), value->string()};
  for (const JsonCursor& entry : value->elements()) {
    if (entry.at("name").string() != "default") continue;
    return NamedText{entry.path(), entry.at("template").string()};
  }
  return std::nullopt;
}

std::optional<NamedText> find_chat_template(
    const Checkpoint& checkpoint, const std::optional<std::filesystem::path>& override_path) {
  if (override_path) {
    return NamedText{override_path->string(), read_file(*override_path, kMaxTemplateBytes)};
  }
  if (const auto text = checkpoint.text_file(kTemplateFile)) {
    return NamedText{std::string(kTemplateFile), *text};
  }
  if (const auto text = checkpoint.text_file(kTokenizerConfigFile)) {
    return template_of_tokenizer_config(*text);
  }
  return std::nullopt;
}

using SpecialTokens = std::map<std::string, std::string>;

// "<s>", or {"content": "<s>", …}; nothing for what is neither.
std::optional<std::string> token_text(const Json& token) {
  if (token.string() != nullptr) return *token.string();
  const Json* const content = token.find("content");
  if (content == nullptr || content->string() == nullptr) return std::nullopt;
  return *content->string();
}

// Of PreTrainedTokenizerBase.from_pretrained() and __init__(): the seven standard names; any other
// "…_token" that has a text (add_bos_token has none); what extra_special_tokens gives a name.
void add_special_tokens(const JsonCursor& file, SpecialTokens& tokens) {
  constexpr std::string_view kStandard[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                            "pad_token", "cls_token", "mask_token"};
  for (const auto& [name, value] : file.members()) {
    if (!name.ends_with("_token") || value.is_null()) continue;
    const bool standard =
        std::find(std::begin(kStandard), std::end(kStandard), name) != std::end(kStandard);
    const std::optional<std::string> text = token_text(value.json());
    if (!text && standard) value.fail("expected a text or an object with \"content\"");
    if (text) tokens.insert_or_assign(std::string(name), *text);
  }
  const auto extra = file.find_set("extra_special_tokens");
  if (!extra || extra->json().object() == nullptr) return;
  for (const auto& [name, value] : extra->members()) {
    const std::optional<std::string> text = token_text(value.json());
    if (!text) value.fail("expected a text or an object with \"content\"");
    tokens.insert_or_assign(std::string(name), *text);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\"'";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

std::optional<TokenizerAsset> read_tokenizer(const Checkpoint& checkpoint, int vocab_size) {
  const std::optional<std::string> text = checkpoint.text_file(kTokenizerFile);
  if (!text) return std::nullopt;
  return with_context(kTokenizerFile, [&] {
    TokenizerAsset asset{compile_tokenizer(*text), std::string(tokenizer_unicode_version())};
    const Tokenizer tokenizer(asset.tables);
    if (tokenizer.num_ids() > vocab_size) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("has token ids up to {}, but the model's vocab_size is {}",
                              tokenizer.num_ids() - 1, vocab_size),
                  "the tokenizer may be another model's, or tokens were added without resizing the "
                  "embedding");
    }
    return asset;
  });
}

std::optional<std::string> read_chat_template(
    const Checkpoint& checkpoint, const std::optional<std::filesystem::path>& override_path) {
  std::optional<NamedText> found = find_chat_template(checkpoint, override_path);
  if (!found || found->text.empty()) return std::nullopt;
  with_context(found->name, [&] {
    if (const auto offset = find_invalid_utf8(found->text)) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("byte {} is not UTF-8", *offset));
    }
    if (found->text.size() > kMaxTemplateBytes) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{} bytes, a template may have {}",
                                                           found->text.size(), kMaxTemplateBytes));
    }
    const ChatTemplate parsed(found->text);
  });
  return std::move(found->text);
}

std::map<std::string, std::string> read_special_tokens(const Checkpoint& checkpoint) {
  SpecialTokens tokens;
  for (const std::string_view file : {kTokenizerConfigFile, kSpecialTokensFile}) {
    const auto text = checkpoint.text_file(file);
    if (!text) continue;
    const bool complete = with_context(file, [&] {
      const Json json = Json::parse(*text);
      add_special_tokens(JsonCursor(json), tokens);
      return JsonCursor(json).find("added_tokens_decoder").has_value();
    });
    if (complete) break;
  }
  return tokens;
}

std::string read_licence(const Checkpoint& checkpoint) {
  constexpr std::string_view kKey = "license:";
  const std::optional<std::string> card = checkpoint.text_file("README.md");
  if (!card) return {};
  std::string_view rest = *card;
  if (trimmed(take_line(rest)) != "---") return {};
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (trimmed(line) == "---") return {};
    if (!line.starts_with(kKey)) continue;
    const std::string_view value = trimmed(line.substr(kKey.size()));
    return find_invalid_utf8(value) ? std::string() : std::string(value);
  }
  return {};
}

}  // namespace trtmc
