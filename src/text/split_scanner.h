// The published split patterns of byte-level tokenizers, scanned by hand: the same matches as
// Oniguruma with Unicode 16.0, many times faster. Private to text/.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trtmc {

// What the patterns differ in. Each of them covers every text without a gap.
struct SplitScanner {
  // GPT-2: lower-case contractions; one space may lead letters, numbers and others.
  // Otherwise (cl100k, Llama 3, Qwen 2): contractions of any case, any other character may lead
  // letters, others take the line ends after them, white space ends with its last line end.
  bool is_gpt2;
  size_t max_number;  // Characters in a run of numbers.

  // The end of the match that begins at `begin` < text.size(). `text` is UTF-8.
  size_t match_end(std::string_view text, size_t begin) const;
};

// The pattern that ByteLevel uses by itself.
inline constexpr SplitScanner kGpt2Scanner{true, static_cast<size_t>(-1)};

// The scanner whose matches are exactly those of `pattern`, if there is one.
std::optional<SplitScanner> find_split_scanner(std::string_view pattern);

}  // namespace trtmc
