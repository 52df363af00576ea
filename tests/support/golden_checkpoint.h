// The random checkpoints whose results tools/make_goldens.py recorded, made again from their
// formula (tools/make_random_checkpoint.py), and wrong variants of them.
#pragma once

#include <filesystem>
#include <functional>

#include "base/json.h"
#include "tests/support/safetensors_writer.h"

namespace trtmc {

// What is done to a checkpoint before it is written; empty: nothing.
struct GoldenCheckpointChanges {
  std::function<void(Json& config)> config;
  std::function<void(OwnedTensor& tensor)> tensor;
};

// Writes config.json and model.safetensors of the golden's model into the folder `path`, which is
// made. `golden`: as read_goldens() gives it.
void write_golden_checkpoint(const Json& golden, const std::filesystem::path& path,
                             const GoldenCheckpointChanges& changes = {});

}  // namespace trtmc
