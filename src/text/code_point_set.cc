#include "text/code_point_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode_tables.h"

namespace trtmc {
namespace {

constexpr char32_t kEnd = 0x110000;
constexpr char32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

struct Run {
  char32_t first, last;
  uint8_t properties;
};

// All code points as runs of equal properties.
const std::vector<Run>& runs() {
  static const std::vector<Run> kRuns = [] {
    std::vector<Run> runs;
    for (char32_t c = 0; c < kEnd; ++c) {
      const uint8_t properties = unicode_properties(c);
      if (!runs.empty() && runs.back().properties == properties) {
        runs.back().last = c;
      } else {
        runs.push_back({c, c, properties});
      }
    }
    return runs;
  }();
  return kRuns;
}

}  // namespace

CodePointSet CodePointSet::with_properties(FunctionRef<bool(uint8_t)> wanted) {
  CodePointSet set;
  for (const Run& run : runs()) {
    if (wanted(run.properties)) set.add(run.first, run.last);
  }
  return set;
}

void CodePointSet::add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

std::vector<CodePointSet::Range> CodePointSet::merged() const {
  std::vector<Range> sorted = ranges_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> merged;
  for (const Range& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CodePointSet CodePointSet::complement() const {
  CodePointSet result;
  char32_t next = 0;
  for (const Range& range : merged()) {
    if (range.first > next) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next < kEnd) result.add(next, kEnd - 1);
  return result;
}

std::string CodePointSet::to_regex() const {
  std::string text;
  const auto append = [&](char32_t first, char32_t last) {
    if (first > last) return;
    text += fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(first));
    if (first != last) text += fmt::format("-\\x{{{:x}}}", static_cast<uint32_t>(last));
  };
  for (const Range& range : merged()) {
    if (range.last < kFirstSurrogate || range.first > kLastSurrogate) {
      append(range.first, range.last);
      continue;
    }
    if (range.first < kFirstSurrogate) append(range.first, kFirstSurrogate - 1);
    if (range.last > kLastSurrogate) append(kLastSurrogate + 1, range.last);
  }
  return text.empty() ? "(*FAIL)" : "[" + text + "]";
}

}  // namespace trtmc
