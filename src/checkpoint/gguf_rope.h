// Rotary settings of a GGUF as Transformers' "rope_parameters". Private to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"
#include "checkpoint/gguf_metadata.h"

namespace trtmc {

// From the keys "<prefix>rope.*" and from `factors`, the tensor rope_freqs.weight: what each
// frequency is divided by [head_dim / 2], or empty. llama.cpp's converter writes Llama 3's scaling
// as nothing but that tensor; the setting is found again as the one of low_freq_factor 1 and
// high_freq_factor 4 (those of every published Llama) and an original context of a power of two
// whose factors they are, to the rounding of float32.
//
// Throws kUnsupported for factors of no such setting; other scalings are refused by name where
// "rope_parameters" are read.
Json gguf_rope_parameters(const GgufMetadata& metadata, const std::string& prefix, int64_t head_dim,
                          std::span<const float> factors);

}  // namespace trtmc
