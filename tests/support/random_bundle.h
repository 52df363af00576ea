// Bundles of random weights in any shape, for tests of backends and for benchmarks. Deterministic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "model/decoder_spec.h"

namespace trtmc {

// A product's weights are uniform with the variance that keeps an activation's size, so that a
// model of any depth has logits of ordinary size. No tokenizer, no template. `weights` is the name
// of an element type that isn't quantised, or of a scheme of quantisation.
void write_random_bundle(const std::filesystem::path& path, const DecoderSpec& spec,
                         std::string_view weights, uint64_t seed);

}  // namespace trtmc
