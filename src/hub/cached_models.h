// What the Hugging Face cache holds of models, and how to free it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/hub_id.h"

namespace trtmc {

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;  // Branches and tags that were this commit.
  std::filesystem::path folder;
  size_t num_files = 0;
  uint64_t bytes = 0;  // Of its files.
  bool whole = true;   // False: a link leads nowhere.
};

struct CachedModel {
  HubId id;
  std::filesystem::path folder;  // models--OWNER--NAME
  std::vector<CachedRevision> revisions;
  uint64_t bytes = 0;          // Of all its blobs: those of two revisions count once.
  uint64_t partial_bytes = 0;  // Of downloads that are not finished.
};

// The models of the cache, by id. A cache that does not exist has none. Reads the folders only;
// what does not belong there is passed over.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache);

// What removing a revision, or all of a model, would take away.
struct CacheRemoval {
  std::vector<std::filesystem::path> paths;  // Files, and folders with all that is below them.
  uint64_t bytes = 0;                        // Freed by it.
};

// `commit` empty: the whole model. Blobs that another revision uses stay; the last revision takes
// the whole model with it. Throws kNotFound if there is no such revision.
CacheRemoval plan_removal(const CachedModel& model, const std::string& commit);

// Refuses with kInvalidArgument while another program downloads into the model. `locks` is the
// model's folder of locks.
void remove_from_cache(const CacheRemoval& removal, const std::filesystem::path& locks);

}  // namespace trtmc
