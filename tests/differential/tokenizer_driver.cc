// Answers tokenizer questions over pipes, for tokenizer_diff.py.
//
// usage: tokenizer_driver tokenizer.json
// A request is [kind: u32][size: u32][size bytes], little-endian; kind's low byte is 0 for encode,
// 1 for decode, with bit 8 for add_special or skip_special and bit 9 for plain text. What is
// encoded are texts with a byte 0xFF between them. The answer is [size: u32][bytes]: for each text
// [count: i32][ids: i32], or what ids decode to. An error answers size 0xFFFFFFFF, then
// [size][message].
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

constexpr uint32_t kDecode = 1, kSpecial = 1 << 8, kPlain = 1 << 9, kError = 0xFFFFFFFF;

std::string answer(const trtmc::Tokenizer& tokenizer, uint32_t kind, const std::string& body) {
  if ((kind & 0xFF) == kDecode) {
    std::vector<trtmc::TokenId> ids(body.size() / sizeof(trtmc::TokenId));
    std::memcpy(ids.data(), body.data(), ids.size() * sizeof(trtmc::TokenId));
    return tokenizer.decode(ids, (kind & kSpecial) != 0);
  }
  std::vector<trtmc::TokenId> all;
  for (size_t begin = 0; begin <= body.size();) {
    const size_t end = std::min(body.find('\xFF', begin), body.size());
    const auto ids = tokenizer.encode(
        std::string_view(body).substr(begin, end - begin),
        {.add_special = (kind & kSpecial) != 0, .match_added = (kind & kPlain) == 0});
    all.push_back(static_cast<trtmc::TokenId>(ids.size()));
    all.insert(all.end(), ids.begin(), ids.end());
    begin = end + 1;
  }
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(trtmc::TokenId)};
}

void write_sized(const std::string& bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  std::fwrite(&size, sizeof(size), 1, stdout);
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

void write_error(const char* message) {
  std::fwrite(&kError, sizeof(kError), 1, stdout);
  write_sized(message);
}

int serve(const char* path) {
  const auto tables = trtmc::compile_tokenizer(trtmc::read_file(path));
  const trtmc::Tokenizer tokenizer(tables);
  write_sized("ready");
  std::fflush(stdout);
  uint32_t request[2];
  while (std::fread(request, sizeof(request), 1, stdin) == 1) {
    std::string body(request[1], '\0');
    if (std::fread(body.data(), 1, body.size(), stdin) != body.size()) return 1;
    try {
      write_sized(answer(tokenizer, request[0], body));
    } catch (const trtmc::Error& error) {
      write_error(error.what());
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    return serve(argv[1]);
  } catch (const trtmc::Error& error) {
    write_error(error.what());
    return 0;
  }
}
