#include "text/tokenizer_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/small_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

std::vector<std::byte> small_tables() {
  Json root = small_tokenizer({{"a", "b"}, {"ab", "c"}});
  root.set("added_tokens", Json::parse(R"([{"id": 258, "content": "<a>", "single_word": false,
      "lstrip": true, "rstrip": true, "normalized": false, "special": true}])"));
  root.set("pre_tokenizer", Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\d+|x"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})"));
  return compile_tokenizer(root.dump());
}

TEST(TokenizerTables, CutOffTablesAreCorrupt) {
  const std::vector<std::byte> whole = small_tables();
  for (size_t size = 0; size < whole.size(); size += size < sizeof(TablesHeader) ? 31 : 997) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(error_of([&] { Tokenizer tokenizer(cut); }).code(), ErrorCode::kCorrupt) << size;
  }
}

TEST(TokenizerTables, AnotherVersionIsUnsupported) {
  std::vector<std::byte> tables = small_tables();
  tables[offsetof(TablesHeader, version)] = std::byte{1};
  EXPECT_EQ(error_of([&] { Tokenizer tokenizer(tables); }).code(), ErrorCode::kUnsupported);
}

// Bytes of the tables, one at a time, as 0xFF (all of the header): refused, or a tokenizer that
// runs and ends.
TEST(TokenizerTables, NoDamagedByteLeadsOutside) {
  const std::vector<std::byte> whole = small_tables();
  int refused = 0;
  for (size_t at = 0; at < whole.size(); at += at < sizeof(TablesHeader) ? 1 : 7) {
    std::vector<std::byte> damaged = whole;
    damaged[at] = std::byte{0xFF};
    try {
      const Tokenizer tokenizer(damaged);
      const std::vector<TokenId> ids =
          tokenizer.encode("abc <a> 12x abab\n\u00E9", {.add_special = true});
      for (const TokenId id : ids) EXPECT_LT(id, tokenizer.num_ids()) << at;
      tokenizer.decode(ids, true);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace trtmc
