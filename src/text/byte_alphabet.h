// The alphabet of byte-level BPE: every byte as one printable character, so that a vocabulary can
// be JSON text. A space is "Ġ", a line feed "Ċ". Source: `bytes_to_unicode` of GPT-2's encoder.py.
// Private to text/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trtmc {

// The bytes that `text` spells, or nothing if a character of it (or a byte, where `text` is not
// UTF-8) is not of the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);
// The text that spells `bytes`.
std::string alphabet_of_bytes(std::string_view bytes);

}  // namespace trtmc
