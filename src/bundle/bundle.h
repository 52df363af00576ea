// A model ready to run, in one mapped file. Opening checks magic, version, bounds and the header's
// hash; reading is using the mapping. docs/bundle_format.md is normative.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "bundle/manifest.h"
#include "model/tensor_key.h"
#include "tensor/packed_layout.h"

namespace trtmc {

inline constexpr uint32_t kBundleVersion = 1;
inline constexpr std::string_view kTokenizerSection = "tokenizer";
inline constexpr std::string_view kChatTemplateSection = "chat_template";

enum class SectionKind : uint32_t { kTensor = 0, kTokenizer = 1, kText = 2 };

struct Section {
  std::string name;
  SectionKind kind;
  DType dtype;          // Of a tensor.
  TensorLayout layout;  // Of a tensor.
  Shape shape;          // Of a tensor; rank 1 or 2.
  uint64_t offset;      // From the start of the file, a multiple of 4096.
  uint64_t bytes;
  Sha256Digest sha256;
};

// Whether `path` is a file that begins as every bundle does, be it damaged or of a later version.
bool is_bundle_file(const std::filesystem::path& path);

class Bundle {
 public:
  // Throws kNotFound, kCorrupt, or kUnsupported for a newer format version. Of the sections, texts
  // are hashed here; tensors and tokenizer tables, which take milliseconds to seconds, by
  // verify_hashes() only.
  explicit Bundle(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const Manifest& manifest() const { return manifest_; }
  const DecoderSpec& spec() const { return manifest_.spec; }
  std::span<const Section> sections() const { return sections_; }
  uint64_t file_bytes() const { return file_.bytes().size(); }
  // The header's hash: names this bundle's content.
  const Sha256Digest& identity() const { return identity_; }

  const Section* find(std::string_view name) const;
  std::span<const std::byte> bytes(const Section& section) const;
  // Gives back the memory of what was read of the file, a part of a section; see MappedFile.
  void release(std::span<const std::byte> part) const { file_.release(part); }
  // A weight. Every key of tensor_keys(spec()) is there, with its shape: opening has checked it.
  WeightView weight(const TensorKey& key) const;
  std::span<const std::byte> tokenizer_tables() const;    // Throws kUnsupported if there are none.
  std::optional<std::string_view> chat_template() const;  // Nothing for a base model.

  // Hashes one of sections() and looks at the padding after it. Throws kCorrupt naming it.
  void verify_section(size_t index) const;
  // All of them, and so every byte of the file.
  void verify_hashes() const;

 private:
  MappedFile file_;
  Manifest manifest_;
  std::vector<Section> sections_;
  Sha256Digest identity_;
  std::optional<std::string> chat_template_;
};

}  // namespace trtmc
