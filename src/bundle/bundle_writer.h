// Writes a bundle: sections are declared, then streamed in any order, then sealed. The bytes depend
// on what is written alone, not on the order or the time.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "bundle/bundle.h"

namespace trtmc {

// The size of the bundle that these would make; see BundleWriter.
uint64_t bundle_bytes(const Manifest& manifest, std::vector<Section> sections);

class BundleWriter {
 public:
  // `sections` in file order: every tensor of tensor_keys(spec), then the tokenizer if there is
  // one, then the chat template. Offset, hash and a tensor's size are filled in here. Reserves the
  // whole file's space. Throws kInvalidArgument for what could not be read back.
  BundleWriter(const std::filesystem::path& path, Manifest manifest, std::vector<Section> sections,
               AtomicFile::IfExists if_exists);
  ~BundleWriter();

  // Appends to section `index`. Sections may be written in any order, each from its start to its
  // end; by several threads at once, if each has a section of its own.
  void append(size_t index, std::span<const std::byte> bytes);

  // The hash of manifest.source_files[index], where it was empty at the start.
  void set_file_hash(size_t index, const Sha256Digest& digest);

  // Writes the header and gives the file its name. Every section must be whole.
  void commit();

  uint64_t file_bytes() const;
  // As given, with offsets and sizes; the hashes are there after commit().
  std::span<const Section> sections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trtmc
