// A .gguf file, mapped: magic, version, counts, keys with values, the tensors' names, shapes, types
// and offsets, and after padding their bytes
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian).
// Everything the header claims is checked against the file before any of it is used.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "checkpoint/ggml_type.h"
#include "checkpoint/gguf_metadata.h"
#include "tensor/tensor_view.h"

namespace trtmc {

struct GgufTensor {
  const GgmlType* type;
  Shape shape;  // Rows first: the reverse of the file's order. One or two dimensions or more.
  std::span<const std::byte> bytes;  // Within the file.
};

struct GgufContents {
  GgufMetadata metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;  // By the file's names.
};

// Throws kCorrupt for what the format forbids: counts, lengths and sizes that the file is too short
// for, a key or a tensor twice, names that are not UTF-8, an alignment that is no power of two,
// offsets that are not aligned, tensors that overlap; kUnsupported for other versions, big-endian
// files and element types that are not read. The result borrows `file`.
GgufContents parse_gguf(std::span<const std::byte> file);

class GgufFile {
 public:
  // Throws kNotFound, or as above with the file's name in front.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const GgufMetadata& metadata() const { return contents_.metadata; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const {
    return contents_.tensors;
  }
  // Gives back the memory of `part` if it lies in this file.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile file_;
  GgufContents contents_;
};

}  // namespace trtmc
