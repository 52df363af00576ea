// What a build will do, decided before a byte is written: which tensors, from where, stored how.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "checkpoint/checkpoint.h"
#include "families/model_family.h"

namespace trtmc {

struct BuildOptions {
  std::string family = {};                 // Empty: by the checkpoint's architecture.
  std::optional<int> context_length = {};  // Overrides max_position_embeddings.
  std::optional<double> yarn_factor = {};  // --rope-scaling yarn:2.0
  std::string quantization = "none";       // One of quant_schemes().
  // A file in place of the checkpoint's own.
  std::optional<std::filesystem::path> chat_template = {};
  std::string source_name = {};  // Recorded; empty: the folder's name.
  std::string source_revision = {};
};

struct PlannedTensor {
  TensorKey key;
  std::vector<std::string> sources;
  std::vector<std::string> encodings;  // How the checkpoint keeps each source: "BF16", "Q4_K".
  DType dtype;                         // As stored: the values exactly, unless it is quantised.
  TensorLayout layout;
  Shape shape;
};

struct BuildPlan {
  std::shared_ptr<const Checkpoint> checkpoint;
  const ModelFamily* family;
  Manifest manifest;  // Without the hashes of the source files.
  std::vector<PlannedTensor> tensors;
  std::vector<std::byte> tokenizer_tables;  // Empty: none.
  std::optional<std::string> chat_template;
  std::vector<std::string> warnings;
  uint64_t parameters;
  uint64_t bundle_bytes;  // Of the file to be written.
};

// Refuses here whatever can't be built. Reads the configuration, the text files and the tensors'
// headers; of the weights only a tied checkpoint's own lm_head.weight, to compare it.
BuildPlan plan_build(std::shared_ptr<const Checkpoint> checkpoint, const BuildOptions& options);

// The bundle's sections in file order: the plan's tensors, tokenizer tables and template.
std::vector<Section> planned_sections(const BuildPlan& plan);

}  // namespace trtmc
