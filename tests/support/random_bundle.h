// Bundles of random weights in any shape, for tests of backends and for benchmarks. Deterministic.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/decoder_spec.h"
#include "tensor/dtype.h"

namespace trtmc {

// A product's weights are uniform with the variance that keeps an activation's size, so that a
// model of any depth has logits of ordinary size. No tokenizer, no template. A quantised type is
// that of the scheme of its name: under "q4" the embedding is q8.
void write_random_bundle(const std::filesystem::path& path, const DecoderSpec& spec, DType dtype,
                         uint64_t seed);

}  // namespace trtmc
