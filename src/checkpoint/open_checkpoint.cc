#include "checkpoint/open_checkpoint.h"

#include <fmt/format.h>

#include <fstream>

#include "base/error.h"
#include "checkpoint/gguf_checkpoint.h"
#include "checkpoint/hf_directory.h"

namespace trtmc {
namespace {

bool begins_as_gguf(const std::filesystem::path& path) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace

std::shared_ptr<const Checkpoint> open_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return open_hf_directory(path);
  if (path.extension() == ".gguf" || begins_as_gguf(path)) return open_gguf(path);
  throw Error(ErrorCode::kUnsupported, fmt::format("{}: no GGUF file", path.string()),
              "give a folder with config.json and safetensors, or a .gguf file");
}

}  // namespace trtmc
