#include "hub/cached_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "hub/cache_lock.h"
#include "hub/cache_paths.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxRefBytes = 4096;
constexpr int kMaxDepth = 16;  // Of folders in a snapshot or below refs.

// The regular files and links below `folder`, in a fixed order; folders behind links are not
// entered.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() >= kMaxDepth) entry.disable_recursion_pending();
    std::error_code ignored;
    const fs::file_status status = entry->symlink_status(ignored);
    if (fs::is_regular_file(status) || fs::is_symlink(status)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

// What removing `path` frees: nothing for a link, such as huggingface_hub's into its store of blobs
// that several models share.
uint64_t own_bytes(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) ? 0 : size_or_zero(path);
}

uint64_t own_bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const fs::path& file : files_below(folder)) bytes += own_bytes(file);
  return bytes;
}

std::string read_ref(const fs::path& path) {
  try {
    return read_file(path, kMaxRefBytes);
  } catch (const Error&) {
    return {};
  }
}

// The blob of this model that an entry of a snapshot links to, or the entry itself.
fs::path blob_of(const fs::path& entry) {
  std::error_code error;
  const fs::path target = fs::read_symlink(entry, error);
  if (error) return entry;
  return (target.is_absolute() ? target : entry.parent_path() / target).lexically_normal();
}

CachedRevision read_revision(const fs::path& folder) {
  CachedRevision revision{folder.filename().string(), {}, folder};
  for (const fs::path& file : files_below(folder)) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) revision.whole = false;
    ++revision.num_files;
    revision.bytes += size_or_zero(file);
  }
  return revision;
}

CachedModel read_model(const fs::path& folder, HubId id) {
  CachedModel model{std::move(id), folder, {}};
  std::map<std::string, std::vector<std::string>> refs;
  for (const fs::path& ref : files_below(folder / "refs")) {
    refs[read_ref(ref)].push_back(ref.lexically_relative(folder / "refs").generic_string());
  }
  std::set<fs::path> counted;
  for (const fs::path& entry : entries_of(folder / "snapshots")) {
    std::error_code ignored;
    if (!is_commit(entry.filename().string()) || !fs::is_directory(entry, ignored)) continue;
    CachedRevision revision = read_revision(entry);
    revision.refs = refs[revision.commit];
    for (const fs::path& file : files_below(entry)) {
      const fs::path blob = blob_of(file);
      if (counted.insert(blob).second) model.bytes += size_or_zero(blob);
    }
    model.revisions.push_back(std::move(revision));
  }
  for (const fs::path& blob : entries_of(folder / "blobs")) {
    if (blob.extension() == ".incomplete") {
      model.partial_bytes += size_or_zero(blob);
    } else if (counted.insert(blob.lexically_normal()).second) {
      model.bytes += size_or_zero(blob);  // Downloaded for a revision that is not whole yet.
    }
  }
  return model;
}

std::set<fs::path> blobs_of(const CachedRevision& revision, const fs::path& blobs) {
  std::set<fs::path> used;
  for (const fs::path& file : files_below(revision.folder)) {
    const fs::path blob = blob_of(file);
    // A link may lead anywhere; only the model's own blobs are ours to remove.
    if (blob.parent_path() == blobs) used.insert(blob);
  }
  return used;
}

}  // namespace

std::vector<CachedModel> cached_models(const fs::path& cache) {
  std::vector<CachedModel> models;
  for (const fs::path& folder : entries_of(cache)) {
    std::error_code ignored;
    const auto id = hub_id_of_folder(folder.filename().string());
    if (id && fs::is_directory(folder, ignored)) models.push_back(read_model(folder, *id));
  }
  return models;
}

CacheRemoval plan_removal(const CachedModel& model, const std::string& commit) {
  if (commit.empty()) {
    return {{model.folder},
            own_bytes_below(model.folder / "blobs") + own_bytes_below(model.folder / "snapshots")};
  }
  const auto is_it = [&](const CachedRevision& revision) { return revision.commit == commit; };
  const auto found = std::find_if(model.revisions.begin(), model.revisions.end(), is_it);
  if (found == model.revisions.end()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: the cache has no revision {}", model.id.str(), commit));
  }
  if (model.revisions.size() == 1) return plan_removal(model, "");
  const fs::path blobs = (model.folder / "blobs").lexically_normal();
  std::set<fs::path> freed = blobs_of(*found, blobs);
  for (const CachedRevision& other : model.revisions) {
    if (is_it(other)) continue;
    for (const fs::path& blob : blobs_of(other, blobs)) freed.erase(blob);
  }
  // In an order that leaves no ref without its snapshot and no link without its blob, should it be
  // interrupted.
  CacheRemoval removal{{}, own_bytes_below(found->folder)};
  for (const std::string& ref : found->refs) removal.paths.push_back(model.folder / "refs" / ref);
  removal.paths.push_back(found->folder);
  for (const fs::path& blob : freed) {
    removal.paths.push_back(blob);
    removal.bytes += own_bytes(blob);
  }
  return removal;
}

void remove_from_cache(const CacheRemoval& removal, const fs::path& locks) {
  std::vector<CacheLock> held;
  for (const fs::path& path : entries_of(locks)) {
    if (path.extension() != ".lock") continue;
    auto lock = CacheLock::try_lock(path);
    if (!lock) {
      throw Error(ErrorCode::kInvalidArgument, "another program is downloading it",
                  "remove it when that is done");
    }
    held.push_back(std::move(*lock));
  }
  for (const fs::path& path : removal.paths) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: can't be removed: {}", path.string(), error.message()));
    }
  }
}

}  // namespace trtmc
