#include "text/unicode_tables.h"

#include <gtest/gtest.h>

namespace trtmc {
namespace {

// Counts over all code points of Unicode 16.0, from DerivedGeneralCategory.txt.
TEST(UnicodeTables, HaveAsManyOfEachClassAsUnicode16) {
  int letters = 0, numbers = 0, spaces = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    letters += is_letter(c) ? 1 : 0;
    numbers += is_number(c) ? 1 : 0;
    spaces += is_white_space(c) ? 1 : 0;
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(spaces, 25);
}

TEST(UnicodeTables, KnowTheTrapsByName) {
  EXPECT_TRUE(is_letter(0x1C89));        // CYRILLIC CAPITAL LETTER TJE, new in 16.0.
  EXPECT_TRUE(is_number(0x10D40));       // GARAY DIGIT ZERO, new in 16.0.
  EXPECT_FALSE(is_white_space(0x180E));  // MONGOLIAN VOWEL SEPARATOR, a space for PCRE2.
  EXPECT_FALSE(is_white_space(0x1F));    // A space for Python's str.isspace.
  EXPECT_TRUE(is_word(0x200D));          // ZERO WIDTH JOINER.
  EXPECT_TRUE(is_word(0x24B6));          // CIRCLED LATIN CAPITAL LETTER A.
  EXPECT_EQ(general_category(0xD800), GeneralCategory::kCs);
  EXPECT_EQ(general_category(0x10FFFF), GeneralCategory::kCn);
}

}  // namespace
}  // namespace trtmc
