#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kPublished = TRTMC_BINARY_DIR "/testdata/tests/data/smollm3-3b/tokenizer.json";
const std::string kTiny = TRTMC_SOURCE_DIR "/models/smollm3-tiny/tokenizer.json";

// A tokenizer with the tables it works on.
struct Loaded {
  explicit Loaded(std::string_view json) : tables(compile_tokenizer(json)), tokenizer(tables) {}
  std::vector<std::byte> tables;
  Tokenizer tokenizer;
};

const Tokenizer& tiny() {
  static const Loaded loaded(read_file(kTiny));
  return loaded.tokenizer;
}

std::vector<TokenId> ids_of(const JsonCursor& ids) {
  std::vector<TokenId> result;
  for (const JsonCursor& id : ids.elements()) result.push_back(static_cast<TokenId>(id.integer()));
  return result;
}

// Recorded from PyPI `tokenizers` by tools/make_tokenizer_goldens.py.
struct Golden {
  const char* name;
  std::string tokenizer;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class TokenizerGolden : public testing::TestWithParam<Golden> {};

TEST_P(TokenizerGolden, IdsAndTextAreThoseOfTokenizers) {
  const Loaded loaded(read_file(GetParam().tokenizer));
  const Json golden = Json::parse(read_file(
      std::string(TRTMC_SOURCE_DIR "/tests/golden/tokenizer_") + GetParam().name + ".json"));
  const auto cases = JsonCursor(golden).at("cases").elements();
  ASSERT_GT(cases.size(), 40u);
  for (const JsonCursor& item : cases) {
    const std::string& text = item.at("text").string();
    SCOPED_TRACE(text);
    const std::vector<TokenId> ids = ids_of(item.at("ids"));
    EXPECT_EQ(loaded.tokenizer.encode(text), ids);
    EXPECT_EQ(loaded.tokenizer.decode(ids, false), item.at("decoded").string());
    EXPECT_EQ(loaded.tokenizer.decode(ids, true), item.at("decoded_without_special").string());
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, TokenizerGolden,
                         testing::Values(Golden{"3b", kPublished}, Golden{"tiny", kTiny}),
                         [](const auto& golden) { return std::string(golden.param.name); });

TEST(Tokenizer, DecodingIsTheInverseOfEncoding) {
  const std::string text = " \xF0\x9F\x98\x80 na\u00EFve <|im_end|>\r\n\tx";
  EXPECT_EQ(tiny().decode(tiny().encode(text), false), text);
}

TEST(Tokenizer, DecodesATokenThatIsHalfACodePoint) {
  const std::vector<TokenId> ids = tiny().encode("\u1E9E");  // Too rare for one token.
  ASSERT_GT(ids.size(), 1u);
  EXPECT_EQ(tiny().decode(std::span(ids).first(1), false),
            std::string("\u1E9E").substr(0, tiny().token_bytes(ids[0]).size()));
}

TEST(Tokenizer, SkipsOnlyWhatIsFlaggedSpecial) {
  const std::vector<TokenId> ids = tiny().encode("<think>x<|im_end|>");
  EXPECT_EQ(tiny().decode(ids, true), "<think>x");
}

TEST(Tokenizer, PlainTextMatchesNoAddedTokens) {
  const auto end = tiny().find("<|im_end|>");
  ASSERT_TRUE(end);
  EXPECT_THAT(tiny().encode("<|im_end|>"), ElementsAre(*end));
  const auto plain = tiny().encode("<|im_end|>", {.match_added = false});
  EXPECT_THAT(plain, testing::Not(testing::Contains(*end)));
  EXPECT_EQ(tiny().decode(plain, true), "<|im_end|>");
}

TEST(Tokenizer, FindsTokensByTheirText) {
  EXPECT_EQ(tiny().find("<|begin_of_text|>"), 10221);  // tokenizer.json, added_tokens.
  EXPECT_EQ(tiny().token_bytes(*tiny().find("\u0120a")), " a");
  EXPECT_EQ(tiny().find("<|no such token|>"), std::nullopt);
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8WithItsOffset) {
  try {
    tiny().encode("ab\xFF");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("byte 2"));
  }
}

TEST(Tokenizer, RefusesIdsWithoutAToken) {
  for (const TokenId id : {-1, tiny().num_ids()}) {
    EXPECT_THROW(tiny().decode(std::vector<TokenId>{id}, false), Error) << id;
    EXPECT_THAT(tiny().token_bytes(id), IsEmpty());
    EXPECT_FALSE(tiny().is_special(id));
  }
}

// Ten thousand times the word as one piece: a quadratic merge would take minutes.
TEST(Tokenizer, LongRunsOfOneLetterTakeNoQuadraticTime) {
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(tiny().decode(tiny().encode(text), false), text);
}

}  // namespace
}  // namespace trtmc
