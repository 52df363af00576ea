#include "tests/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/random_bundle.h"

namespace trtmc {

const std::vector<ModelShape>& model_shapes() {
  static const std::vector<ModelShape> kShapes = {
      {"heads_1_to_1", 2, 2, 64}, {"heads_3_to_1", 6, 2, 64}, {"heads_4_to_1", 4, 1, 128, false},
      {"heads_8_to_1", 8, 1, 64}, {"heads_5_to_1", 5, 1, 16}, {"head_dim_24", 4, 2, 24, false}};
  return kShapes;
}

DecoderSpec spec_of(const ModelShape& shape) {
  return {.vocab_size = 133,
          .hidden_size = 72,
          .intermediate_size = 101,
          .num_heads = shape.num_heads,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .context_length = 256,
          .rms_norm_eps = 1e-6F,
          .tied_embeddings = shape.tied,
          .rope = {.theta = 10000, .rotary_dim = shape.head_dim, .scaling = {}},
          .layers = {{.rope = true, .sliding_window = 0},
                     {.rope = false, .sliding_window = 0},
                     {.rope = true, .sliding_window = 21}}};
}

RandomModel::RandomModel(const DecoderSpec& spec, std::string_view weights) {
  const auto path = folder_.path() / "random.trtmc";
  write_random_bundle(path, spec, weights, 7);
  bundle_ = std::make_unique<Bundle>(path);
}

std::vector<TokenId> random_tokens(const DecoderSpec& spec, int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % static_cast<uint32_t>(spec.vocab_size));
  }
  return tokens;
}

Rows run_step(Executor& executor, const std::vector<Chunk>& chunks) {
  size_t max_blocks = 0;
  for (const Chunk& chunk : chunks) max_blocks = std::max(max_blocks, chunk.table.size());
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> starts = {0};
  std::vector<BlockId> tables;
  for (const Chunk& chunk : chunks) {
    for (size_t i = 0; i < chunk.tokens.size(); ++i) {
      tokens.push_back(chunk.tokens[i]);
      positions.push_back(chunk.first_position + static_cast<int32_t>(i));
    }
    starts.push_back(static_cast<int32_t>(tokens.size()));
    tables.insert(tables.end(), chunk.table.begin(), chunk.table.end());
    tables.resize(max_blocks * (starts.size() - 1), -1);
  }
  std::vector<int32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  executor.submit({.tokens = tokens,
                   .positions = positions,
                   .sequence_starts = starts,
                   .block_tables = tables,
                   .max_blocks = static_cast<int>(max_blocks),
                   .logits_rows = rows,
                   .adapters = {}});
  const Logits& logits = executor.wait();
  Rows result;
  for (const int32_t row : rows) {
    logits.copy_row(row, result.emplace_back(static_cast<size_t>(logits.vocab_size())));
  }
  return result;
}

std::vector<BlockId> block_range(const Executor& executor, int num_tokens, BlockId first) {
  const int size = executor.limits().block_size;
  std::vector<BlockId> table(static_cast<size_t>((num_tokens + size - 1) / size));
  std::iota(table.begin(), table.end(), first);
  return table;
}

Rows run_chunked(Executor& executor, const std::vector<TokenId>& tokens,
                 const std::vector<int>& chunk_sizes, const std::vector<BlockId>& table) {
  Rows all;
  size_t chunk = 0;
  for (size_t first = 0; first < tokens.size();) {
    const int size = chunk_sizes[std::min(chunk++, chunk_sizes.size() - 1)];
    const size_t end = std::min(tokens.size(), first + static_cast<size_t>(size));
    const auto at = [&](size_t i) { return tokens.begin() + static_cast<ptrdiff_t>(i); };
    Rows rows = run_step(executor, {{.tokens = {at(first), at(end)},
                                     .first_position = static_cast<int>(first),
                                     .table = table}});
    std::ranges::move(rows, std::back_inserter(all));
    first = end;
  }
  return all;
}

Rows run_whole(Executor& executor, const std::vector<TokenId>& tokens) {
  const auto count = static_cast<int>(tokens.size());
  return run_chunked(executor, tokens, {count}, block_range(executor, count));
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    size += double{b[i]} * double{b[i]};
  }
  return std::sqrt(difference / size);
}

}  // namespace trtmc
