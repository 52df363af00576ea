// Whether a file is still the one it was.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trtmc {

// Equal as long as nobody has written to the file at a path or put another one in its place.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t bytes = 0;
  int64_t written_ns = 0;  // When it was written to last.
  bool operator==(const FileIdentity&) const = default;
};

// Of the file at `path`, behind links. Throws kNotFound if there is none, kInvalidArgument or
// kCorrupt if it can't be looked up.
FileIdentity identity_of(const std::filesystem::path& path);

}  // namespace trtmc
