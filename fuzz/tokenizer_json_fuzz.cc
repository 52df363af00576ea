// A tokenizer.json from anywhere: refused, or compiled to tables that load, encode and decode.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

constexpr std::string_view kText =
    "It's 12345\u0663 na\u00EFve <a> <|x|> \u4F60\u597D  ab\tabc\r\n\n \U0001F600 'LL";

// The tables too come from a file: damage one byte of them, chosen by the input.
void run_damaged(std::vector<std::byte> tables, const uint8_t* data, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < size; ++i) at = at * 31 + data[i];
  tables[at % tables.size()] ^= static_cast<std::byte>(1 + at % 255);
  const trtmc::Tokenizer tokenizer(tables);
  tokenizer.decode(tokenizer.encode(kText), true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tables = trtmc::compile_tokenizer({reinterpret_cast<const char*>(data), size});
    const trtmc::Tokenizer tokenizer(tables);
    for (const bool match_added : {false, true}) {
      const auto ids = tokenizer.encode(kText, {.add_special = true, .match_added = match_added});
      for (const auto id : ids) {
        if (id < 0 || id >= tokenizer.num_ids()) std::abort();
      }
      tokenizer.decode(ids, false);
    }
    run_damaged(tables, data, size);
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
  return 0;
}
