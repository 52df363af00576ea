#include "text/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/utf8.h"

namespace trtmc {
namespace {

struct Outcome {
  std::string text, stop;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << "\" stop \"" << outcome.stop << '"';
}

Outcome feed(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  TextStream stream(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    const std::string text = stream.append(piece);
    EXPECT_EQ(find_invalid_utf8(text), std::nullopt) << text;
    outcome.text += text;
  }
  outcome.text += stream.finish();
  outcome.stop = stream.stop();
  EXPECT_EQ(stream.stopped(), !stream.stop().empty());
  return outcome;
}

// Feeds `bytes` in every one of its 2^(size-1) splits.
void expect_for_every_split(const std::string& bytes, const std::vector<std::string>& stops,
                            const Outcome& expected) {
  ASSERT_LE(bytes.size(), 14u);
  const size_t borders = bytes.size() - 1;
  for (size_t split = 0; split < (size_t{1} << borders); ++split) {
    std::vector<std::string> pieces(1);
    for (size_t i = 0; i < bytes.size(); ++i) {
      pieces.back() += bytes[i];
      if (i < borders && (split >> i & 1)) pieces.emplace_back();
    }
    ASSERT_EQ(feed(pieces, stops), expected) << "split " << split;
  }
}

TEST(TextStream, GivesWholeCodePointsOnly) {
  TextStream stream;
  EXPECT_EQ(stream.append("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.append("\x98"), "");
  EXPECT_EQ(stream.append("\x80z"), "\xF0\x9F\x98\x80z");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, ACutCodePointBecomesOneReplacementAtTheEnd) {
  TextStream stream;
  EXPECT_EQ(stream.append("\xE2\x82"), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

// Python: b"a\xff\xe2\x82b\xf0\x9f\x98c\xc0\x80".decode(errors="replace") has U+FFFD for ff, e2 82,
// f0 9f 98, c0 and 80.
TEST(TextStream, ReplacesInvalidBytesAsPythonForEverySplit) {
  const std::string bytes =
      "a\xff\xe2\x82"
      "b\xf0\x9f\x98"
      "c\xc0\x80";
  const std::string bad = "\xEF\xBF\xBD";
  expect_for_every_split(bytes, {}, {"a" + bad + bad + "b" + bad + "c" + bad + bad, ""});
}

TEST(TextStream, HoldsBackWhatMayBecomeAStopString) {
  TextStream stream({"</code>"});
  EXPECT_EQ(stream.append("x</co"), "x");
  EXPECT_EQ(stream.append("re>"), "</core>");
  EXPECT_EQ(stream.append("</"), "");
  EXPECT_EQ(stream.finish(), "</");
}

TEST(TextStream, NothingComesAfterAStopString) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.append("a END b"), "a ");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.append("more"), "");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.stop(), "END");
}

TEST(TextStream, AStopStringThatNeverCompletesIsText) {
  expect_for_every_split("ab</cod", {"</code>"}, {"ab</cod", ""});
}

TEST(TextStream, TheStopThatIsCompleteFirstWins) {
  expect_for_every_split("1abcd2", {"abcd", "bc"}, {"1a", "bc"});
  expect_for_every_split("1abcd2", {"abcd", "abc"}, {"1", "abc"});
}

TEST(TextStream, OfStopsThatEndTogetherTheLongestWins) {
  expect_for_every_split("1abc2", {"c", "abc", "bc"}, {"1", "abc"});
}

TEST(TextStream, OverlappingStartsAreNotLost) {
  expect_for_every_split("aaab", {"aab"}, {"a", "aab"});
  expect_for_every_split("abababc.", {"ababc"}, {"ab", "ababc"});
  expect_for_every_split("xyxyz", {"xyz", "yxq"}, {"xy", "xyz"});
}

TEST(TextStream, FindsStopsOfSeveralByteCodePoints) {
  expect_for_every_split("a\xE2\x82\xAC\xF0\x9F\x98\x80z", {"\xF0\x9F\x98\x80"},
                         {"a\xE2\x82\xAC", "\xF0\x9F\x98\x80"});
}

TEST(TextStream, FindsAStopAfterACutCodePoint) {
  expect_for_every_split("\xE2\x82STOP", {"STOP"}, {"\xEF\xBF\xBD", "STOP"});
}

TEST(TextStream, AStopStringThatIsTheReplacementCharacterIsMetAtTheEndToo) {
  expect_for_every_split("ab\xE2\x82", {"\xEF\xBF\xBD"}, {"ab", "\xEF\xBF\xBD"});
}

TEST(TextStream, EmptyStopStringsAreNone) { expect_for_every_split("abc", {"", ""}, {"abc", ""}); }

// Against the definition, on every text of seven letters over {a, b} with several stop strings.
TEST(TextStream, AgreesWithTheDefinitionForEverySplit) {
  const std::vector<std::vector<std::string>> stop_sets = {
      {"ab"}, {"aba", "bb"}, {"aab", "ab", "b"}, {"abab", "ba"}, {"bbb", "abb", "aaaa"}};
  for (const auto& stops : stop_sets) {
    for (int letters = 0; letters < 128; ++letters) {
      std::string text;
      for (int i = 0; i < 7; ++i) text += (letters >> i & 1) ? 'b' : 'a';
      Outcome expected{text, ""};
      for (size_t end = 1; end <= text.size() && expected.stop.empty(); ++end) {
        for (const std::string& stop : stops) {
          if (text.substr(0, end).ends_with(stop) && stop.size() > expected.stop.size()) {
            expected = {text.substr(0, end - stop.size()), stop};
          }
        }
      }
      expect_for_every_split(text, stops, expected);
    }
  }
}

}  // namespace
}  // namespace trtmc
