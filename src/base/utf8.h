// UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, nothing over
// U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trtmc {

struct CodePoint {
  char32_t value;
  int length;  // In bytes, 1 to 4.
};

// The code point at the start of `text`, or nothing if the bytes there are not one whole code
// point.
std::optional<CodePoint> decode_utf8(std::string_view text);

// The offset of the first byte that is not UTF-8, or nothing if all of it is.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// A character of ASCII that a terminal obeys and does not show.
inline bool is_ascii_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

void append_utf8(std::string& text, char32_t value);

// How many bytes at the end of `text` begin a code point that is not there whole yet: 0 to 3. They
// may become one when more bytes come; anything else that is invalid is not counted.
size_t incomplete_utf8_tail(std::string_view text);

// `text` with each maximal invalid part replaced by U+FFFD, as Python's
// bytes.decode(errors="replace").
std::string replace_invalid_utf8(std::string_view text);

}  // namespace trtmc
