#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trtmc {
namespace {

// What a lead byte asks for: the length, and the range of the second byte (the standard's table
// 3-7).
struct Lead {
  int length;
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte < 0xF5) {
    return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

// How many bytes from the start of `text` fit the form that its first byte asks for: 0 if the first
// byte can't start a code point, lead.length if the code point is whole.
int well_formed_prefix(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 0) return 0;
  int count = 1;
  while (count < lead.length && static_cast<size_t>(count) < text.size()) {
    const unsigned char low = count == 1 ? lead.low : 0x80;
    const unsigned char high = count == 1 ? lead.high : 0xBF;
    const unsigned char next = byte(static_cast<size_t>(count));
    if (next < low || next > high) break;
    ++count;
  }
  return count;
}

}  // namespace

std::optional<CodePoint> decode_utf8(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return CodePoint{first, 1};
  const int length = lead_of(first).length;
  if (length == 0 || well_formed_prefix(text) != length) return std::nullopt;
  char32_t value = first & (0x7Fu >> length);
  for (int i = 1; i < length; ++i) {
    value = (value << 6) | (static_cast<unsigned char>(text[static_cast<size_t>(i)]) & 0x3Fu);
  }
  return CodePoint{value, length};
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  for (size_t i = 0; i < text.size();) {
    if (uint64_t eight; text.size() - i >= sizeof(eight)) {  // Most text is ASCII.
      std::memcpy(&eight, text.data() + i, sizeof(eight));
      if ((eight & kHighBits) == 0) {
        i += sizeof(eight);
        continue;
      }
    }
    const int length = lead_of(static_cast<unsigned char>(text[i])).length;
    if (length == 0 || well_formed_prefix(text.substr(i)) != length) return i;
    i += static_cast<size_t>(length);
  }
  return std::nullopt;
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      put(0xE0 | (value >> 12));
    } else {
      put(0xF0 | (value >> 18));
      put(0x80 | ((value >> 12) & 0x3F));
    }
    put(0x80 | ((value >> 6) & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t tail = 1; tail <= std::min<size_t>(3, text.size()); ++tail) {
    const std::string_view end = text.substr(text.size() - tail);
    const int length = lead_of(static_cast<unsigned char>(end[0])).length;
    if (length == 0) continue;
    const bool open = static_cast<size_t>(length) > tail;
    return open && well_formed_prefix(end) == static_cast<int>(tail) ? tail : 0;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (const auto code_point = decode_utf8(text.substr(i))) {
      result.append(text.substr(i, static_cast<size_t>(code_point->length)));
      i += static_cast<size_t>(code_point->length);
    } else {
      append_utf8(result, 0xFFFD);
      i += static_cast<size_t>(std::max(1, well_formed_prefix(text.substr(i))));
    }
  }
  return result;
}

}  // namespace trtmc
