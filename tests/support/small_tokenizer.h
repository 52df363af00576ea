// A byte-level tokenizer.json small enough to read: every byte as a symbol and the merges that a
// test names.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"

namespace trtmc {

// The alphabet's character for `byte`: itself where Latin-1 prints it, else the next from U+0100.
inline std::string alphabet_char(int byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  int value = byte;
  if (!printable(byte)) {
    value = 0x100;
    for (int b = 0; b < byte; ++b) value += printable(b) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, static_cast<char32_t>(value));
  return text;
}

// Ids 0 to 255 are the bytes; merge i makes id 256 + i. A test sets the other members with
// Json::set.
inline Json small_tokenizer(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  Json vocab(Json::Object{});
  for (int byte = 0; byte < 256; ++byte) vocab.set(alphabet_char(byte), byte);
  Json::Array pairs;
  for (const auto& [left, right] : merges) {
    vocab.set(left + right, 256 + static_cast<int>(pairs.size()));
    pairs.emplace_back(left + " " + right);
  }
  Json model(Json::Object{});
  model.set("type", "BPE");
  model.set("vocab", std::move(vocab));
  model.set("merges", std::move(pairs));
  const Json byte_level = Json::parse(
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})");
  Json root(Json::Object{});
  root.set("version", "1.0");
  root.set("added_tokens", Json::Array{});
  root.set("normalizer", Json());
  root.set("pre_tokenizer", byte_level);
  root.set("post_processor", Json());
  root.set("decoder", byte_level);
  root.set("model", std::move(model));
  return root;
}

}  // namespace trtmc
