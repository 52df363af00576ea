// Token bytes in, text out that can be shown at once: whole code points only, and nothing that
// could still become the start of a stop string. Every split of the same bytes gives the same text.
//
// Of several stop strings the one that is complete first as the bytes come counts, of those that
// end at the same byte the longest. They are looked for in the text, after bytes that are no code
// point have become U+FFFD as Python's bytes.decode(errors="replace") makes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trtmc {

class TextStream {
 public:
  // Stop strings are UTF-8, or code points could come in halves; empty ones are none.
  explicit TextStream(std::vector<std::string> stop_strings = {});

  // The text that is now certain. Once a stop string has been met: stopped() is true, nothing of it
  // or after it ever comes out, and further bytes are ignored.
  std::string append(std::string_view bytes);

  // The rest at the end of the answer; bytes that never became a code point come as U+FFFD.
  std::string finish();

  bool stopped() const { return stopped_; }
  // The stop string that was met; empty before.
  const std::string& stop() const { return stop_; }

 private:
  std::string take_certain(bool at_end);

  std::vector<std::string> stop_strings_;
  std::string held_;  // Not yet certain.
  std::string stop_;
  bool stopped_ = false;
};

}  // namespace trtmc
