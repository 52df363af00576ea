// Random checkpoints of SmolLM3's shape, small enough to make in a test. Deterministic: the same
// options give the same bytes on every machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/dtype.h"

namespace trtmc {

struct TinyCheckpointOptions {
  int num_layers = 4;
  int hidden_size = 64;
  int intermediate_size = 160;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 0;      // 0: hidden_size / num_heads, and config.json has no such key.
  int vocab_size = 320;  // At least 280 for the tokenizer's ids to be inside.
  int context_length = 512;
  double rope_theta = 10000;
  bool tied = true;
  DType dtype = DType::kBF16;
  // Two shards and an index; the layer in the middle has tensors in both.
  bool sharded = false;
  // tokenizer.json and tokenizer_config.json: the 256 bytes as ids 0..255 without merges, then
  // SmolLM3's named tokens; "<|im_end|>" is 268 and ends a turn.
  bool tokenizer = true;
  std::string chat_template = {};  // chat_template.jinja; empty: none.
  uint64_t seed = 0;
  // Members that replace those of config.json and generation_config.json (null too: it is written).
  Json config = Json::Object{};
  Json generation_config = Json::Object{};
};

// Writes the folder `path`, which is made.
void write_tiny_checkpoint(const std::filesystem::path& path,
                           const TinyCheckpointOptions& options = {});

// The weights of such a checkpoint by their names in the file, before rounding to options.dtype.
std::map<std::string, std::vector<float>> tiny_weights(const TinyCheckpointOptions& options);

}  // namespace trtmc
