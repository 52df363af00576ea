// A model as published: its configuration, its text files, its tensors by name, as Transformers
// would have them. Everything in it is untrusted; what is returned here has been checked against
// the file's bounds.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tensor/tensor_view.h"

namespace trtmc {

// One of the weights. Borrows the checkpoint.
struct CheckpointTensor {
  DType dtype;  // Of the values.
  Shape shape;
  std::string_view encoding;         // How the file keeps them: "BF16", "Q4_K".
  std::span<const std::byte> bytes;  // In the file; may be unaligned.
  // Writes the values of a row. Empty where `bytes` are the values, row after row.
  std::function<void(int64_t row, std::span<std::byte> out)> make_row = {};

  // One element of a vector counts as a row.
  size_t row_bytes() const;
  // The values of rows [first, last): where they lie in the file, or made in `buffer`.
  std::span<const std::byte> rows(int64_t first, int64_t last,
                                  std::vector<std::byte>& buffer) const;
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // What a person would call it: the name of the folder or of the file.
  virtual std::string name() const = 0;
  // The folder that files() lie in.
  virtual std::filesystem::path path() const = 0;
  // config.json, and generation_config.json or null where there is none.
  virtual const Json& config() const = 0;
  virtual const Json& generation_config() const = 0;
  // A text file beside the weights ("tokenizer.json", "chat_template.jinja"), or nothing.
  virtual std::optional<std::string> text_file(std::string_view name) const = 0;
  // The weights' names in a fixed (sorted) order, and one of them, mapped, or nothing.
  virtual std::vector<std::string> tensor_names() const = 0;
  virtual std::optional<CheckpointTensor> tensor(std::string_view name) const = 0;
  // Says that rows [first, last) of a tensor have been read and won't be needed soon, so that a
  // mapping can give up its memory. They can still be read.
  void release(const CheckpointTensor& tensor, int64_t first, int64_t last) const;
  // Every file that the checkpoint consists of, in a fixed order: what a build records hashes of.
  virtual std::vector<std::filesystem::path> files() const = 0;

 private:
  // Gives back the memory of a part of the files.
  virtual void release_bytes(std::span<const std::byte> part) const = 0;
};

}  // namespace trtmc
