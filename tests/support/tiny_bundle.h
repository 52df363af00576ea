// A bundle of a decoder with two layers, made without a checkpoint: for tests of the file itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bundle/bundle_writer.h"

namespace trtmc {

struct TinyBundleOptions {
  bool tied = true;
  DType dtype = DType::kBF16;  // Of matrices that are not quantised.
  std::string quantization = "none";
  std::string tokenizer = "not really tables";        // Empty: no such section.
  std::string chat_template = "{{ messages[0] }}\n";  // Likewise.
};

DecoderSpec tiny_spec(bool tied);
Manifest tiny_manifest(bool tied);
// The sections of such a bundle, in their order; offsets and hashes are not set.
std::vector<Section> tiny_sections(const TinyBundleOptions& options);

// Section `index` is filled with the bytes 7 * index + 1, + 2, …
void write_tiny_bundle(const std::filesystem::path& path, const TinyBundleOptions& options = {});

}  // namespace trtmc
