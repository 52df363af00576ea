// Steps of a small model of random weights on one thread, for callgrind to count.
//
//   model_steps write MODEL.trtmc WEIGHTS                (f32, f16, bf16, or a scheme as q8)
//   model_steps run MODEL.trtmc ISA PREFILLS DECODES
//
// A prefill is one step of kPromptTokens tokens, a decode one step of the token behind them. All of
// a kind do the same work, so that the difference of two runs is that of whole steps.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backends/builtin_backends.h"
#include "tests/support/random_bundle.h"

namespace trtmc {
namespace {

constexpr int kPromptTokens = 24;  // Whole tiles of every instruction set.

// As SmolLM3: grouped queries, one layer that rotates and one that does not, tied embeddings.
DecoderSpec small_spec() {
  return {.vocab_size = 1024,
          .hidden_size = 256,
          .intermediate_size = 768,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 64,
          .context_length = 64,
          .rms_norm_eps = 1e-6F,
          .tied_embeddings = true,
          .rope = {.theta = 5e6, .rotary_dim = 64, .scaling = {}},
          .layers = {{.rope = true, .sliding_window = 0}, {.rope = false, .sliding_window = 0}}};
}

// One step of the tokens [first, first + count), and the logits of the last of them.
void step(Executor& executor, int first, int count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::vector<int32_t> positions(tokens.size());
  std::iota(tokens.begin(), tokens.end(), TokenId{1});
  std::iota(positions.begin(), positions.end(), first);
  const int blocks = kPromptTokens / executor.limits().block_size + 1;
  std::vector<BlockId> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), BlockId{0});
  const int32_t starts[] = {0, count};
  const int32_t rows[] = {count - 1};
  executor.submit({.tokens = tokens,
                   .positions = positions,
                   .sequence_starts = starts,
                   .block_tables = table,
                   .max_blocks = blocks,
                   .logits_rows = rows,
                   .adapters = {}});
  executor.wait();
}

void run(const char* path, const char* isa, int prefills, int decodes) {
  const Bundle bundle(path);
  ExecutorOptions options;
  options.num_threads = 1;
  options.isa = isa;
  const auto executor = cpu_backend().load(bundle, options);
  for (int i = 0; i < prefills; ++i) step(*executor, 0, kPromptTokens);
  for (int i = 0; i < decodes; ++i) step(*executor, kPromptTokens, 1);
}

int main_of(int argc, char** argv) {
  try {
    if (argc == 4 && std::strcmp(argv[1], "write") == 0) {
      write_random_bundle(argv[2], small_spec(), argv[3], 1);
      return 0;
    }
    if (argc == 6 && std::strcmp(argv[1], "run") == 0) {
      run(argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_steps: %s\n", error.what());
    return 1;
  }
  std::fputs(
      "usage: model_steps write MODEL WEIGHTS | model_steps run MODEL ISA PREFILLS DECODES\n",
      stderr);
  return 2;
}

}  // namespace
}  // namespace trtmc

int main(int argc, char** argv) { return trtmc::main_of(argc, argv); }
