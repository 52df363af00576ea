// A checkpoint as llama.cpp saves it: one .gguf file, or the parts "<name>-00001-of-0000N.gguf".
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace trtmc {

// Opens the file, or with any of its parts all of them. Architectures llama and smollm3. The
// configuration, the tokenizer and the chat template are made from the metadata and the tensors
// renamed and rearranged, so that it reads as the Hugging Face checkpoint that it was made from:
// every value is exactly what the file stands for (PyPI's `gguf` says the same).
//
// Throws as parse_gguf(), kNotFound for a missing part, kCorrupt for parts that don't fit together
// and kUnsupported naming what is not read.
std::shared_ptr<const Checkpoint> open_gguf(const std::filesystem::path& path);

}  // namespace trtmc
