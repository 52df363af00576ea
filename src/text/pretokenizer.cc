#include "text/pretokenizer.h"

#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode_tables.h"

namespace trtmc {
namespace {

using Behavior = PretokenizerStep::Behavior;

struct Piece {
  TextRange range;
  bool is_match;
};

// The text as matches and what lies between them.
std::vector<Piece> pieces_of(const SplitPattern& pattern, bool invert, std::string_view text) {
  std::vector<Piece> pieces;
  size_t end = 0;
  pattern.for_each_match(text, [&](TextRange match) {
    if (match.begin != end) pieces.push_back({{end, match.begin}, invert});
    pieces.push_back({match, !invert});
    end = match.end;
  });
  if (end != text.size()) pieces.push_back({{end, text.size()}, invert});
  return pieces;
}

// Joins neighbours as `behavior` says, in the order of `pieces` (from the right for
// kMergedWithNext). A piece joins the one before it if `joins(piece, previous)`.
template <typename Joins>
std::vector<TextRange> join_pieces(const std::vector<Piece>& pieces, Joins joins) {
  std::vector<TextRange> joined;
  bool previous_match = false;
  for (const Piece& piece : pieces) {
    if (joins(piece.is_match, previous_match) && !joined.empty()) {
      joined.back().end = piece.range.end;
    } else {
      joined.push_back(piece.range);
    }
    previous_match = piece.is_match;
  }
  return joined;
}

// A match joins the piece after it, unless that is a match too.
std::vector<TextRange> join_with_next(const std::vector<Piece>& pieces) {
  std::vector<TextRange> joined;
  bool next_match = false;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->is_match && !next_match && !joined.empty()) {
      joined.back().begin = piece->range.begin;
    } else {
      joined.push_back(piece->range);
    }
    next_match = piece->is_match;
  }
  return {joined.rbegin(), joined.rend()};
}

std::vector<TextRange> apply_behavior(const std::vector<Piece>& pieces, Behavior behavior) {
  switch (behavior) {
    case Behavior::kIsolated:
      return join_pieces(pieces, [](bool, bool) { return false; });
    case Behavior::kMergedWithPrevious:
      return join_pieces(pieces, [](bool match, bool previous) { return match && !previous; });
    case Behavior::kContiguous:
      return join_pieces(pieces, [](bool match, bool previous) { return match == previous; });
    case Behavior::kMergedWithNext:
      return join_with_next(pieces);
    case Behavior::kRemoved:
      break;
  }
  std::vector<TextRange> kept;
  for (const Piece& piece : pieces) {
    if (!piece.is_match) kept.push_back(piece.range);
  }
  return kept;
}

std::string_view slice(std::string_view text, TextRange range) {
  return text.substr(range.begin, range.end - range.begin);
}

// Digits asks Rust's char::is_numeric, which is at Unicode 17.0 already: 13 more than \p{N}.
bool is_rust_numeric(char32_t c) {
  return is_number(c) || (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
}

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace

std::variant<SplitScanner, SplitRegex, SplitPattern::Literal, SplitPattern::Number>
SplitPattern::make(const PretokenizerStep& step) {
  switch (step.kind) {
    case PretokenizerStep::Kind::kLiteral:
      return Literal{step.pattern};
    case PretokenizerStep::Kind::kNumbers:
      return Number{};
    case PretokenizerStep::Kind::kRegex:
      break;
    case PretokenizerStep::Kind::kByteLevel:
      TRTMC_CHECK(false, "ByteLevel has no pattern");
  }
  if (const auto scanner = find_split_scanner(step.pattern)) return *scanner;
  return SplitRegex(step.pattern);
}

SplitPattern::SplitPattern(const PretokenizerStep& step) : matcher_(make(step)) {}

void SplitPattern::for_each_match(std::string_view text, FunctionRef<void(TextRange)> visit) const {
  const auto scan = [&](const SplitScanner& scanner) {
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = scanner.match_end(text, begin);
      visit({begin, end});
    }
  };
  const auto search = [&](const SplitRegex& regex) {
    regex.for_each_match(text, [&](size_t begin, size_t end) { visit({begin, end}); });
  };
  const auto find = [&](const Literal& literal) {
    for (size_t at = text.find(literal.text); at != std::string_view::npos;
         at = text.find(literal.text, at + literal.text.size())) {
      visit({at, at + literal.text.size()});
    }
  };
  const auto find_numbers = [&](Number) {
    for (size_t at = 0; at < text.size();) {
      const auto c = decode_utf8(text.substr(at));
      TRTMC_CHECK(c, "text to split is UTF-8");
      const size_t end = at + static_cast<size_t>(c->length);
      if (is_rust_numeric(c->value)) visit({at, end});
      at = end;
    }
  };
  std::visit(Overloaded{scan, search, find, find_numbers}, matcher_);
}

Pretokenizer::Pretokenizer(std::vector<PretokenizerStep> steps) : steps_(std::move(steps)) {
  TRTMC_CHECK(!steps_.empty() && steps_.back().kind == PretokenizerStep::Kind::kByteLevel,
              "ByteLevel is the last step");
  for (size_t i = 0; i + 1 < steps_.size(); ++i) patterns_.emplace_back(steps_[i]);
}

void Pretokenizer::split(std::string_view text, FunctionRef<void(std::string_view)> word) const {
  if (!text.empty()) split_from(0, text, word);
}

void Pretokenizer::split_from(size_t index, std::string_view text,
                              FunctionRef<void(std::string_view)> word) const {
  if (index == patterns_.size()) return split_byte_level(text, word);
  const PretokenizerStep& step = steps_[index];
  const auto next = [&](TextRange range) {
    if (range.begin != range.end) split_from(index + 1, slice(text, range), word);
  };
  if (step.behavior == Behavior::kIsolated) {  // Matches and gaps alike: nothing to collect.
    size_t end = 0;
    patterns_[index].for_each_match(text, [&](TextRange match) {
      next({end, match.begin});
      next(match);
      end = match.end;
    });
    return next({end, text.size()});
  }
  const std::vector<Piece> pieces = pieces_of(patterns_[index], step.invert, text);
  for (const TextRange range : apply_behavior(pieces, step.behavior)) next(range);
}

void Pretokenizer::split_byte_level(std::string_view text,
                                    FunctionRef<void(std::string_view)> word) const {
  const PretokenizerStep& step = steps_.back();
  std::string with_space;
  if (step.add_prefix_space && text.front() != ' ') {
    with_space.push_back(' ');
    with_space.append(text);
    text = with_space;
  }
  if (!step.use_regex) return word(text);
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = kGpt2Scanner.match_end(text, begin);
    word(text.substr(begin, end - begin));
  }
}

}  // namespace trtmc
