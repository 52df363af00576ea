// A checkpoint as Hugging Face's libraries save it: a folder with config.json and the weights in
// model.safetensors, or in the shards that model.safetensors.index.json names.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace trtmc {

// Opens and checks the whole folder: the JSON files parse, every shard is there and sound, and the
// index and the shards name the same tensors. Where a folder has model.safetensors and an index,
// the single file is taken, as in Transformers.
//
// Throws kNotFound for what is missing (the folder, config.json, weights in safetensors, a shard),
// kInvalidArgument for JSON that does not parse, kCorrupt for damaged or contradicting weights. The
// tensors stay mapped as long as the checkpoint lives; that nobody writes to the files meanwhile is
// the caller's business. The bytes of a tensor may be unaligned; see SafetensorsFile::tensor().
std::shared_ptr<const Checkpoint> open_hf_directory(const std::filesystem::path& path);

}  // namespace trtmc
