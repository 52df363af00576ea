// Cuts a text into the words that BPE works on, as the pre-tokenizer of a tokenizer.json does:
// splits by pattern, then ByteLevel. Private to text/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "text/split_regex.h"
#include "text/split_scanner.h"

namespace trtmc {

// One step of a Sequence. The numbers stand in the flat tables.
struct PretokenizerStep {
  enum class Kind : uint32_t {
    kRegex,     // Split by an Oniguruma pattern.
    kLiteral,   // Split by a string.
    kNumbers,   // Digits: split by characters of category N.
    kByteLevel  // The last step, always and only.
  };
  // What becomes of a match: SplitDelimiterBehavior of `tokenizers`.
  enum class Behavior : uint32_t {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous
  };

  Kind kind;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;            // What is between the matches counts as the match.
  bool add_prefix_space = false;  // kByteLevel: a word that has no leading space gets one.
  bool use_regex = false;         // kByteLevel: split by GPT-2's pattern after that.
  std::string pattern = {};       // kRegex, kLiteral; not empty.
  bool operator==(const PretokenizerStep&) const = default;
};

// A stretch of a text, from offset `begin` up to `end`.
struct TextRange {
  size_t begin, end;
};

// Where one step finds its matches.
class SplitPattern {
 public:
  // Throws kUnsupported for a pattern that can't be matched exactly as Oniguruma would.
  explicit SplitPattern(const PretokenizerStep& step);

  // Every match from left to right, without overlaps; empty ones too.
  void for_each_match(std::string_view text, FunctionRef<void(TextRange)> visit) const;

 private:
  struct Literal {
    std::string text;
  };
  struct Number {};

  static std::variant<SplitScanner, SplitRegex, Literal, Number> make(const PretokenizerStep& step);

  std::variant<SplitScanner, SplitRegex, Literal, Number> matcher_;
};

// Thread-safe: const after construction.
class Pretokenizer {
 public:
  // `steps` ends with its one kByteLevel. Throws as SplitPattern.
  explicit Pretokenizer(std::vector<PretokenizerStep> steps);

  // Hands out the words of `text`, which is UTF-8, in order. No word is empty; a word lives as long
  // as the call that gets it.
  void split(std::string_view text, FunctionRef<void(std::string_view)> word) const;

 private:
  void split_from(size_t step, std::string_view text,
                  FunctionRef<void(std::string_view)> word) const;
  void split_byte_level(std::string_view text, FunctionRef<void(std::string_view)> word) const;

  std::vector<PretokenizerStep> steps_;
  std::vector<SplitPattern> patterns_;  // Of all steps but the last.
};

}  // namespace trtmc
