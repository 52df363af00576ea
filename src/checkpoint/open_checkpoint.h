// The one door for checkpoints of every form.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace trtmc {

// A folder is opened as a Hugging Face checkpoint, a file that begins as one of GGUF as that.
// Throws kNotFound if nothing is there, kUnsupported for another file, and as open_hf_directory()
// and open_gguf().
std::shared_ptr<const Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace trtmc
