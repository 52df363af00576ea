#include "hub/cache_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "models--";
constexpr uint64_t kMaxRefBytes = 4096;

bool has_bytes(const fs::path& path, uint64_t bytes) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  return is_file && !error && fs::file_size(path, error) == bytes && !error;
}

}  // namespace

std::string repository_folder(const HubId& id) {
  const std::string owner = id.owner.empty() ? "" : id.owner + "--";
  return fmt::format("{}{}{}", kFolderPrefix, owner, id.name);
}

std::optional<HubId> hub_id_of_folder(std::string_view folder) {
  if (!folder.starts_with(kFolderPrefix)) return {};
  std::string id(folder.substr(kFolderPrefix.size()));
  const size_t between = id.find("--");
  if (between != id.npos) id.replace(between, 2, 1, '/');
  return parse_hub_id(id);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw system_error(folder, "can't make the folder", error.value());
}

CachePaths::CachePaths(const fs::path& cache, const HubId& id)
    : repository_(cache / repository_folder(id)),
      locks_(cache / ".locks" / repository_folder(id)) {}

fs::path CachePaths::blob(const FileDigest& digest) const {
  return repository_ / "blobs" / digest.hex;
}

fs::path CachePaths::partial(const FileDigest& digest) const {
  return repository_ / "blobs" / (digest.hex + ".trtmc.incomplete");
}

fs::path CachePaths::lock(const FileDigest& digest) const {
  return locks_ / (digest.hex + ".lock");
}

fs::path CachePaths::snapshot(const std::string& commit) const {
  return repository_ / "snapshots" / commit;
}

std::optional<std::string> CachePaths::cached_commit(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  const fs::path ref = repository_ / "refs" / revision;
  std::error_code ignored;
  if (!fs::is_regular_file(ref, ignored)) return {};
  std::string commit = read_file(ref, kMaxRefBytes);
  if (!is_commit(commit)) return {};
  return commit;
}

void CachePaths::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const fs::path ref = repository_ / "refs" / revision;
  if (cached_commit(revision) == commit) return;
  make_folder(ref.parent_path());
  AtomicFile file(ref, 0, AtomicFile::IfExists::kReplace);
  file.write_at(0, as_bytes(commit));
  file.commit();
}

bool CachePaths::has_blob(const RepositoryFile& file) const {
  return has_bytes(blob(file.digest), file.bytes);
}

bool CachePaths::has_in_snapshot(const std::string& commit, const RepositoryFile& file) const {
  return has_bytes(snapshot(commit) / file.name, file.bytes);
}

void CachePaths::add_to_snapshot(const std::string& commit, const RepositoryFile& file,
                                 bool symlinks) const {
  const fs::path entry = snapshot(commit) / file.name;
  const fs::path blob_path = blob(file.digest);
  make_folder(entry.parent_path());
  std::error_code error;
  fs::remove(entry, error);
  if (symlinks) {
    const auto above = std::count(file.name.begin(), file.name.end(), '/') + 2;
    fs::path target;
    for (auto i = above; i > 0; --i) target /= "..";
    fs::create_symlink(target / "blobs" / file.digest.hex, entry, error);
    // Another program may have made the same link at the same time.
    if (!error || has_in_snapshot(commit, file)) return;
  }
  fs::copy_file(blob_path, entry, fs::copy_options::overwrite_existing, error);
  if (error) throw system_error(entry, "can't be written", error.value());
}

}  // namespace trtmc
