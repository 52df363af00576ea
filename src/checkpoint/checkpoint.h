// A model as published: its configuration, its text files, its tensors by name. Everything in it is
// untrusted; what is returned here has been checked against the file's bounds.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tensor/tensor_view.h"

namespace trtmc {

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  virtual std::filesystem::path path() const = 0;
  // config.json, and generation_config.json or null where there is none.
  virtual const Json& config() const = 0;
  virtual const Json& generation_config() const = 0;
  // A text file beside the weights ("tokenizer.json", "chat_template.jinja"), or nothing.
  virtual std::optional<std::string> text_file(std::string_view name) const = 0;
  // The weights' names in a fixed (sorted) order, and one of them, mapped, or nothing.
  virtual std::vector<std::string> tensor_names() const = 0;
  virtual std::optional<TensorView> tensor(std::string_view name) const = 0;
  // Says that `part` of a tensor's bytes has been read and won't be needed soon, so that a mapping
  // can give up its memory. It can still be read.
  virtual void release(std::span<const std::byte> part) const { static_cast<void>(part); }
  // Every file that the checkpoint consists of, in a fixed order: what a build records hashes of.
  virtual std::vector<std::filesystem::path> files() const = 0;
};

}  // namespace trtmc
