// What a model family fills in: one table in static storage, no state, no inheritance. Above the
// bundle only; the runtime never sees a family.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "model/sampling.h"
#include "model/tensor_key.h"
#include "text/output_markers.h"

namespace trtmc {

// Where a tensor of the decoder comes from: the rows of `sources`, one below the other.
struct TensorRule {
  TensorKey key;
  std::vector<std::string> sources;
  Shape shape;
  bool quantizable;
};

struct GenerationDefaults {
  std::vector<TokenId> stop_ids;  // Sorted, without repeats.
  SamplingParams sampling;
};

struct ModelFamily {
  std::string_view name;
  std::span<const std::string_view> architectures;  // "SmolLM3ForCausalLM"
  std::string_view strategy;  // "smollm3_decoder_kv_cache"; unique among families
  DecoderSpec (*read_spec)(const Json& config);
  // The inverse: a config.json, without the names of family and architecture.
  Json (*write_spec)(const DecoderSpec&);
  std::vector<TensorRule> (*tensor_rules)(const DecoderSpec&);
  // Checkpoint tensors that are known and knowingly left out (a tied checkpoint's own
  // lm_head.weight).
  std::vector<std::string> (*ignored_tensors)(const DecoderSpec&);
  GenerationDefaults (*defaults)(const Checkpoint&);
  OutputMarkers (*markers)(const Checkpoint&);
};

// The config.json of a checkpoint of this family and spec, as Transformers reads it. Throws
// kUnsupported if reading it would not give `spec` again.
Json config_json(const ModelFamily& family, const DecoderSpec& spec);

// Generated from the family.cmake files.
std::span<const ModelFamily* const> all_families();

// The family of the checkpoint's "architectures", or the one called `name` if that is not empty.
// Throws kUnsupported naming what was asked and what is supported.
const ModelFamily& find_family(const Json& config, std::string_view name = {});

}  // namespace trtmc
