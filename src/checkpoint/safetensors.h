// A .safetensors file, mapped: u64 length of the header, a JSON header, the tensors' bytes
// (https://huggingface.co/docs/safetensors, "Format"). Everything the header claims is checked
// against the file before any of it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "checkpoint/checkpoint.h"

namespace trtmc {

struct SafetensorsEntry {
  std::string dtype;  // As the header writes it: "BF16".
  Shape shape;
  std::span<const std::byte> bytes;  // Within the file.
};

// By name, sorted.
using SafetensorsEntries = std::map<std::string, SafetensorsEntry, std::less<>>;

// The tensors of a whole file. Throws kCorrupt for what the format forbids: a header longer than
// 100 MB or than the file, or that is not the JSON it should be, a name that stands twice, a size
// that is not shape times dtype, bytes that overlap, leave a hole, or end before or after the
// file's end. (The format's own reader, 0.8.0, lets equal names and blanks in front of the header
// pass, and refuses unknown dtypes, which here are refused when such a tensor is asked for.)
SafetensorsEntries parse_safetensors(std::span<const std::byte> file);

class SafetensorsFile {
 public:
  // Throws kNotFound, or kCorrupt as above, with the file's name in front.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const SafetensorsEntries& entries() const { return entries_; }

  // Borrows from this file. The bytes need not be aligned for their type, so read them through
  // read_floats() or memcpy. Throws kUnsupported for types other than F32, F16 and BF16.
  // `name` must be among the entries.
  CheckpointTensor tensor(std::string_view name) const;
  // Gives back the memory of `part` if it lies in this file.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile file_;
  SafetensorsEntries entries_;
};

}  // namespace trtmc
