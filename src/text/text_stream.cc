#include "text/text_stream.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "text/partial_match.h"

namespace trtmc {
namespace {

struct StopMatch {
  size_t start, end;
  const std::string* stop;
};

// The match that is complete first when the text comes byte by byte; of those that end together the
// longest.
std::optional<StopMatch> find_first_stop(std::string_view text,
                                         const std::vector<std::string>& stop_strings) {
  std::optional<StopMatch> first;
  for (const std::string& stop : stop_strings) {
    const size_t start = text.find(stop);
    if (start == std::string_view::npos) continue;
    const size_t end = start + stop.size();
    if (!first || end < first->end || (end == first->end && start < first->start)) {
      first = StopMatch{start, end, &stop};
    }
  }
  return first;
}

// How many bytes at the end of `text` may become a stop string when more come.
size_t possible_stop_tail(std::string_view text, const std::vector<std::string>& stop_strings) {
  size_t longest = 0;
  for (const std::string& stop : stop_strings) {
    longest = std::max(longest, partial_match_tail(text, stop));
  }
  return longest;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  std::erase(stop_strings_, std::string());
}

std::string TextStream::append(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  return take_certain(false);
}

std::string TextStream::finish() {
  if (stopped_) return {};
  return take_certain(true);
}

std::string TextStream::take_certain(bool at_end) {
  const size_t open = at_end ? 0 : incomplete_utf8_tail(held_);
  std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, held_.size() - open));
  held_.erase(0, held_.size() - open);
  if (const auto match = find_first_stop(text, stop_strings_)) {
    stopped_ = true;
    stop_ = *match->stop;
    held_.clear();
    text.resize(match->start);
    return text;
  }
  const size_t possible = at_end ? 0 : possible_stop_tail(text, stop_strings_);
  held_.insert(0, text, text.size() - possible, possible);
  text.resize(text.size() - possible);
  return text;
}

}  // namespace trtmc
