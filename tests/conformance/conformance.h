// Small random models, and steps on them, for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "bundle/bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {

// Widths that are no multiple of 16, and three layers: one rotates, one does not, one has a window
// that begins inside a block.
struct ModelShape {
  std::string name;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  bool tied = true;
};
const std::vector<ModelShape>& model_shapes();
DecoderSpec spec_of(const ModelShape& shape);

// A bundle in a folder of its own.
class RandomModel {
 public:
  // weights: an element type or a scheme of quantisation.
  RandomModel(const DecoderSpec& spec, std::string_view weights);
  // A quantised type is that of the scheme of its name: under q4 the embedding is q8.
  RandomModel(const DecoderSpec& spec, DType dtype) : RandomModel(spec, dtype_name(dtype)) {}
  const Bundle& bundle() const { return *bundle_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Bundle> bundle_;
};

// `count` tokens, the same for the same seed.
std::vector<TokenId> random_tokens(const DecoderSpec& spec, int count, uint32_t seed);

// Some of a sequence's tokens: those of one step.
struct Chunk {
  std::vector<TokenId> tokens;
  int first_position;
  std::vector<BlockId> table;  // Of the whole sequence.
};

using Rows = std::vector<std::vector<float>>;

// One step; the logits of every token.
Rows run_step(Executor& executor, const std::vector<Chunk>& chunks);

// The blocks [first, first + what `num_tokens` need).
std::vector<BlockId> block_range(const Executor& executor, int num_tokens, BlockId first = 0);

// A whole sequence in chunks of these sizes, the last one repeated.
Rows run_chunked(Executor& executor, const std::vector<TokenId>& tokens,
                 const std::vector<int>& chunk_sizes, const std::vector<BlockId>& table);
Rows run_whole(Executor& executor, const std::vector<TokenId>& tokens);

// |a - b| / |b|, both as vectors.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace trtmc
