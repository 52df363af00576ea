// Any bytes as a text for the embedded model's tokenizer, and as ids for it. Without a normalizer
// in it, what is encoded decodes to the same bytes; an added token cuts a text in two; and the
// tokens, streamed in any pieces with any stop strings, give what the whole gives.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "fuzz/fuzz_input.h"
#include "text/text_stream.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

using trtmc::TokenId;

const trtmc::Tokenizer& tokenizer() {
  static const auto tables =
      trtmc::compile_tokenizer(trtmc::source_file("models/smollm3-tiny/tokenizer.json"));
  static const trtmc::Tokenizer loaded(tables);
  return loaded;
}

void check_round_trip(std::string_view text, const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) {
    TRTMC_CHECK(id >= 0 && id < tokenizer().num_ids(), "an id outside the vocabulary");
    TRTMC_CHECK(!tokenizer().token_bytes(id).empty(), "an id without bytes");
    bytes += tokenizer().token_bytes(id);
  }
  TRTMC_CHECK(bytes == text, "ids that are not the text");
  TRTMC_CHECK(tokenizer().decode(ids, false) == text, "a decode that is not the text");
}

// `text` around an added token: none of them contains the beginning of another, so what is left
// and right of it is encoded as if it stood alone.
void check_added_token(std::string_view text) {
  constexpr std::string_view kAdded = "<|im_end|>";
  const size_t middle =
      text.size() / 2 - trtmc::incomplete_utf8_tail(text.substr(0, text.size() / 2));
  const std::string_view left = text.substr(0, middle), right = text.substr(middle);
  std::vector<TokenId> expected = tokenizer().encode(left);
  expected.push_back(*tokenizer().find(kAdded));
  for (const TokenId id : tokenizer().encode(right)) expected.push_back(id);
  const std::string joined = std::string(left) + std::string(kAdded) + std::string(right);
  TRTMC_CHECK(tokenizer().encode(joined) == expected, "an added token that does not cut the text");
}

struct Streamed {
  std::string text, stop;
  bool stopped = false;
  bool operator==(const Streamed&) const = default;
};

// `bytes` in pieces; the sizes are those of `sizes`, again and again.
Streamed streamed(std::string_view bytes, const std::vector<std::string>& stops,
                  const std::vector<size_t>& sizes) {
  trtmc::TextStream stream(stops);
  Streamed result;
  for (size_t at = 0, piece = 0; at < bytes.size(); at += sizes[piece++ % sizes.size()]) {
    result.text += stream.append(bytes.substr(at, sizes[piece % sizes.size()]));
    TRTMC_CHECK(!trtmc::find_invalid_utf8(result.text), "half a code point was shown");
  }
  result.text += stream.finish();
  result.stop = stream.stop();
  result.stopped = stream.stopped();
  return result;
}

void check_stream(std::string_view bytes, const std::vector<std::string>& stops,
                  const std::vector<size_t>& sizes) {
  const Streamed whole = streamed(bytes, stops, {bytes.size() + 1});
  TRTMC_CHECK(streamed(bytes, stops, sizes) == whole, "pieces that are not the whole");
  TRTMC_CHECK(streamed(bytes, stops, {1}) == whole, "bytes that are not the whole");
  const std::string text = trtmc::replace_invalid_utf8(bytes);
  TRTMC_CHECK(whole.stopped || whole.text == text, "a stream that loses text");
  TRTMC_CHECK(!whole.stopped || text.starts_with(whole.text + whole.stop),
              "a stop that is not there");
  for (const std::string& stop : stops) {
    TRTMC_CHECK(stop.empty() || whole.text.find(stop) == std::string::npos,
                "a stop that was shown");
  }
}

// Ids from anywhere: refused, or the bytes of each in turn.
void check_ids(std::string_view bytes) {
  std::vector<TokenId> ids(bytes.size() / 2);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<uint8_t>(bytes[2 * i]) + 256 * static_cast<int8_t>(bytes[2 * i + 1]);
  }
  try {
    std::string expected;
    const std::string decoded = tokenizer().decode(ids, false);
    for (const TokenId id : ids) expected += tokenizer().token_bytes(id);
    TRTMC_CHECK(decoded == expected, "a decode that is not its tokens");
  } catch (const trtmc::Error&) {
    // An id that has no token.
  }
}

}  // namespace

// A byte for the number of stop strings, which follow to the next line feed each; a byte for how
// many sizes of pieces; the sizes; the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trtmc::FuzzInput input(data, size);
  std::vector<std::string> stops;
  for (size_t left = input.below(4); left > 0; --left) {
    stops.push_back(trtmc::replace_invalid_utf8(input.until("\n")));
  }
  std::vector<size_t> sizes{1 + input.below(7)};
  for (size_t left = input.below(4); left > 0; --left) sizes.push_back(1 + input.below(40));
  const std::string_view text = input.rest();
  check_stream(text, stops, sizes);
  check_ids(text);
  const bool valid = !trtmc::find_invalid_utf8(text);
  for (const bool match_added : {false, true}) {
    try {
      check_round_trip(text, tokenizer().encode(text, {.match_added = match_added}));
      TRTMC_CHECK(valid, "a text that is not UTF-8");
    } catch (const trtmc::Error&) {
      TRTMC_CHECK(!valid, "a text refused");
    }
  }
  if (valid) check_added_token(text);
  return 0;
}
