// Writes a bundle: sections are declared, then streamed in any order, then sealed.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "bundle/bundle.h"

namespace trtmc {

class BundleWriter {
 public:
  // `sections` in file order; offset and hash are filled in here. Reserves the whole file's space.
  BundleWriter(const std::filesystem::path& path, Manifest manifest, std::vector<Section> sections,
               AtomicFile::IfExists if_exists);
  ~BundleWriter();

  // Appends to section `index`. Sections may be written in any order, each from its start to its
  // end.
  void append(size_t index, std::span<const std::byte> bytes);

  // Writes the header and gives the file its name. Every section must be whole.
  void commit();

  uint64_t file_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trtmc
