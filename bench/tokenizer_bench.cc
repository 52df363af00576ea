// Times the tokenizer on one core.
//
// usage: tokenizer_bench tokenizer.json text.txt [rounds]
// Prints what compiling and loading the tables takes, then the best encode and decode in MB/s.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

// Seconds of processor time that `body` takes, the best of `rounds`: one thread, and what else runs
// on the machine counts less than in elapsed time.
template <typename Body>
double best_seconds(int rounds, Body body) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const std::clock_t start = std::clock();
    body();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

void run(const char* json_path, const char* text_path, int rounds) {
  const std::string json = trtmc::read_file(json_path), text = trtmc::read_file(text_path);
  std::vector<std::byte> tables;
  const double compile = best_seconds(1, [&] { tables = trtmc::compile_tokenizer(json); });
  const double load = best_seconds(rounds, [&] { trtmc::Tokenizer tokenizer(tables); });
  fmt::print("compile {:.0f} ms, {} bytes of tables, load {:.2f} ms\n", compile * 1e3,
             tables.size(), load * 1e3);
  const trtmc::Tokenizer tokenizer(tables);
  std::vector<trtmc::TokenId> ids;
  const double encode = best_seconds(rounds, [&] { ids = tokenizer.encode(text); });
  std::string decoded;
  const double decode = best_seconds(rounds, [&] { decoded = tokenizer.decode(ids, false); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("encode {:.1f} MB/s, decode {:.1f} MB/s, {} bytes, {} ids, {}\n", megabytes / encode,
             megabytes / decode, text.size(), ids.size(),
             decoded == text ? "decodes to the text" : "DECODES TO SOMETHING ELSE");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 5);
  } catch (const trtmc::Error& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
    return trtmc::exit_status(error.code());
  }
  return 0;
}
