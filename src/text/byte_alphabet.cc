#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace trtmc {
namespace {

constexpr int kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable in Latin-1.

// The byte of each code point below kAlphabetEnd, -1 for none.
constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  int next = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[static_cast<size_t>(printable ? byte : next++)] = byte;
  }
  return bytes;
}

constexpr std::array<int16_t, kAlphabetEnd> kBytes = make_bytes();

// Of every character of the alphabet: all are below U+0800.
std::string utf8_of(size_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

std::array<std::string, 256> make_texts() {
  std::array<std::string, 256> texts;
  for (size_t c = 0; c < kBytes.size(); ++c) {
    if (kBytes[c] >= 0) texts[static_cast<size_t>(kBytes[c])] = utf8_of(c);
  }
  return texts;
}

}  // namespace

std::string alphabet_of_bytes(std::string_view bytes) {
  static const std::array<std::string, 256> kTexts = make_texts();
  std::string text;
  for (const char byte : bytes) text += kTexts[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const auto c = decode_utf8(text);
    if (!c || c->value >= kBytes.size() || kBytes[c->value] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes[c->value]);
    text.remove_prefix(static_cast<size_t>(c->length));
  }
  return bytes;
}

}  // namespace trtmc
