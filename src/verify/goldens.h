// Recorded results of Transformers, as tools/make_goldens.py writes them. docs/testing.md describes
// the format.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/token.h"
#include "tensor/tensor_view.h"

namespace trtmc {

// An array of floats with its shape.
struct GoldenArray {
  Shape shape;
  std::vector<float> values;

  // The vector along the last axis at index `row` of the flattened other axes.
  std::span<const float> row(size_t row) const;
};

struct GoldenHidden {
  GoldenArray whole;    // [1 + layers, hidden_positions, hidden]
  GoldenArray norms;    // [1 + layers, positions]
  GoldenArray columns;  // [1 + layers, hidden_column_positions, hidden_columns]
};

// What one run of Transformers in one precision gave.
struct GoldenRecord {
  std::vector<int> positions;  // Rising; where `columns` and what follows it are recorded.
  GoldenArray logits;          // [full_positions, vocab]
  GoldenArray columns;         // [positions, columns]
  GoldenArray logsumexp;       // [positions]
  std::vector<TokenId> argmax;
  GoldenArray margins;                 // Of the first over the second, [positions].
  std::optional<GoldenHidden> hidden;  // Of float32 only.
  std::vector<TokenId> continuation;   // Greedy.
  // Of each token of it the largest logits and whose they are, falling: [tokens, a few].
  std::vector<std::vector<TokenId>> continuation_first;
  GoldenArray continuation_logits;
};

// What float32 gave with its keys and values rounded to bf16.
struct GoldenKvRecord {
  std::vector<int> positions;  // Rising.
  GoldenArray columns;         // [positions, columns]
  GoldenArray noise;           // [positions]: how far float64 is from it, relative L2.
};

struct GoldenCase {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<int> full_positions, hidden_positions, hidden_column_positions;  // Rising.
  std::optional<GoldenRecord> float32, bfloat16;
  std::optional<GoldenKvRecord> bfloat16_kv;
};

struct GoldenPerplexity {
  int window;
  std::vector<TokenId> ids;
  std::vector<double> nll;  // Of each window: the sum over its tokens but the first.
};

// One file: one model.
struct Golden {
  std::string name;
  int num_layers, hidden_size, vocab_size;
  std::vector<int> columns, hidden_columns;
  std::vector<GoldenCase> cases;
  std::optional<GoldenPerplexity> perplexity;
};

// Throws kInvalidArgument naming the key; what is returned is consistent: every array has the shape
// above, every position lies in its prompt, every id in the vocabulary.
Golden parse_golden(const Json& json);

struct Float32Thresholds {
  double logits_relative_l2, logits_cosine, logsumexp_difference, hidden_relative_l2;
  double greedy_mismatches, perplexity_relative;
};
struct Bfloat16Thresholds {
  double cosine_p5, relative_l2_p95, float32_error_share;
  double argmax_agreement, argmax_margin, continuation_edit_distance;
};
struct Bfloat16KvThresholds {
  double noise_factor, relative_l2;  // At most noise_factor * the oracle's noise + relative_l2.
};
struct GoldenThresholds {
  Float32Thresholds float32;
  Bfloat16Thresholds bfloat16;
  Bfloat16KvThresholds bfloat16_kv;
};

// Every threshold is required, unknown ones are refused.
GoldenThresholds parse_thresholds(const Json& json);

}  // namespace trtmc
