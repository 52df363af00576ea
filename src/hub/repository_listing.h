// What a repository holds at one commit, as the hub's API tells it, and which of it a build needs.
// The text comes from a server and is not trusted: what is returned here has been checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trtmc {

// What a file's bytes must hash to; also the name of its blob in the cache.
struct FileDigest {
  enum class Kind {
    kGitSha1,  // 40 digits: SHA-1 of "blob <size>\0" and the bytes.
    kSha256,   // 64 digits: of the bytes, for files kept by git LFS.
  };
  Kind kind;
  std::string hex;

  bool operator==(const FileDigest&) const = default;
};

struct RepositoryFile {
  std::string name;  // Relative, with slashes; no part of it is empty, "." or "..".
  uint64_t bytes;
  FileDigest digest;

  bool operator==(const RepositoryFile&) const = default;
};

struct RepositoryListing {
  std::string commit;                 // Forty hexadecimal digits.
  std::vector<RepositoryFile> files;  // Sorted by name, no name twice.
};

// The answer to GET /api/models/ID/revision/REVISION?blobs=true. Throws kCorrupt, naming what it
// does not make sense of. (https://huggingface.co/docs/hub/api)
RepositoryListing parse_listing(std::string_view json);

// The files that `trtmc build` reads: configuration, tokenizer, template, model card, safetensors
// of the top folder. Small ones come first. Throws kNotFound for a repository without
// config.json, kUnsupported for one without safetensors, saying what it has instead.
std::vector<RepositoryFile> files_for_build(const RepositoryListing& listing);

}  // namespace trtmc
