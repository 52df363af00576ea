// One model's place in the Hugging Face cache, laid out as Hugging Face's own tools do
// (https://huggingface.co/docs/huggingface_hub/guides/manage-cache), so that both find what the
// other downloaded:
//
//   models--OWNER--NAME/blobs/<digest>                 the bytes, by their hash
//                       snapshots/<commit>/<name>      a relative link to a blob
//                       refs/<branch or tag>           the commit, in text
//   .locks/models--OWNER--NAME/<digest>.lock           held while a blob is being written
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "hub/hub_id.h"
#include "hub/repository_listing.h"

namespace trtmc {

class CachePaths {
 public:
  CachePaths(const std::filesystem::path& cache, const HubId& id);

  const std::filesystem::path& repository() const { return repository_; }
  const std::filesystem::path& locks() const { return locks_; }
  std::filesystem::path blob(const FileDigest& digest) const;
  // Named apart from huggingface_hub's own partial files, whose bytes lie otherwise, but so that
  // its cleaning up finds it.
  std::filesystem::path partial(const FileDigest& digest) const;
  std::filesystem::path lock(const FileDigest& digest) const;
  std::filesystem::path snapshot(const std::string& commit) const;

  // The commit that `revision` was when it was last downloaded: itself if it is one, else by its
  // ref. Nothing if there is none, or its text is no commit.
  std::optional<std::string> cached_commit(const std::string& revision) const;
  // Replaces the ref whole, never in part. Nothing to do for a commit.
  void write_ref(const std::string& revision, const std::string& commit) const;

  // Whether the snapshot or the blobs have the file's bytes, by its size.
  bool has_blob(const RepositoryFile& file) const;
  bool has_in_snapshot(const std::string& commit, const RepositoryFile& file) const;
  // Makes the snapshot's entry for a file whose blob is there: a link, or a copy if `symlinks` is
  // false or the file system has none.
  void add_to_snapshot(const std::string& commit, const RepositoryFile& file, bool symlinks) const;

 private:
  std::filesystem::path repository_;
  std::filesystem::path locks_;
};

// "models--OWNER--NAME"
std::string repository_folder(const HubId& id);
// The other way; nothing for a folder that is not of a model.
std::optional<HubId> hub_id_of_folder(std::string_view folder);

// Makes the folder and those above it. Throws as the file system says.
void make_folder(const std::filesystem::path& folder);

}  // namespace trtmc
