// Writes a bundle of random weights in a given shape, SmolLM3-3B's unless told otherwise: something
// for `trtmc bench` to measure without a checkpoint. Speed does not depend on the weights.
//
//   random_bundle OUT.trtmc --layers 12
#include "tests/support/random_bundle.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

namespace trtmc {
namespace {

struct Options {
  std::filesystem::path out;
  int layers = 36;
  int hidden = 2048;
  int intermediate = 11008;
  int heads = 16;
  int kv_heads = 4;
  int head_dim = 128;
  int vocab = 128256;
  std::string dtype = "bf16";
};

DecoderSpec spec_of(const Options& options) {
  DecoderSpec spec{.vocab_size = options.vocab,
                   .hidden_size = options.hidden,
                   .intermediate_size = options.intermediate,
                   .num_heads = options.heads,
                   .num_kv_heads = options.kv_heads,
                   .head_dim = options.head_dim,
                   .context_length = 65536,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 5e6, .rotary_dim = options.head_dim, .scaling = {}},
                   .layers = {}};
  for (int layer = 0; layer < options.layers; ++layer) {
    spec.layers.push_back({.rope = layer % 4 != 3, .sliding_window = 0});
  }
  return spec;
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app("Write a bundle of random weights for `trtmc bench`");
  app.add_option("out", options.out, "The bundle")->required();
  app.add_option("--layers", options.layers);
  app.add_option("--hidden", options.hidden);
  app.add_option("--intermediate", options.intermediate);
  app.add_option("--heads", options.heads);
  app.add_option("--kv-heads", options.kv_heads);
  app.add_option("--head-dim", options.head_dim);
  app.add_option("--vocab", options.vocab);
  app.add_option("--dtype", options.dtype)
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8", "q6", "q4_q6", "q4"}));
  CLI11_PARSE(app, argc, argv);
  try {
    write_random_bundle(options.out, spec_of(options), options.dtype, 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_bundle: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace trtmc

int main(int argc, char** argv) { return trtmc::main_of(argc, argv); }
