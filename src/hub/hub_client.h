// Downloads a model from the hub into the Hugging Face cache, or finds it there.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/hub_id.h"
#include "hub/hub_settings.h"
#include "hub/repository_listing.h"
#include "hub/transport.h"

namespace trtmc {

struct Snapshot {
  std::string commit;
  std::filesystem::path folder;       // Holds the files by their names.
  std::vector<RepositoryFile> files;  // Those of a build; empty for one found in the cache.
  uint64_t bytes = 0;                 // Of `files`.
  uint64_t downloaded_bytes = 0;      // Of those that were not in the cache.
};

// What a caller may want to show or to look at meanwhile; each may be empty. Called from the
// calling thread.
struct PullObserver {
  std::function<void(const Snapshot& snapshot)> on_resolved = {};  // Before anything is fetched.
  // The text of config.json, before the weights are fetched: who can't use such a model throws.
  std::function<void(const std::string& config)> on_config = {};
  DownloadProgress on_progress = {};
};

class HubClient {
 public:
  // `transports` makes the connections; see curl_transport_factory().
  HubClient(HubSettings settings, TransportFactory transports, const DownloadOptions& options = {});

  // Resolves the revision (main, if none is named) and sees to it that the cache has a snapshot of
  // it with every file that a build needs. An interrupted call leaves what it has fetched, and the
  // next one goes on there; a snapshot gets its files, and a ref its commit, only when all are
  // there and their hashes are right. Offline: as cached(). Throws Error, DownloadStopped.
  Snapshot pull(const HubSource& source, const PullObserver& observer,
                const std::stop_token& stop) const;

  // The snapshot that the cache has of the revision, without asking the hub. Throws kNotFound.
  Snapshot cached(const HubSource& source) const;

 private:
  RepositoryListing list(const HubSource& source, const std::string& revision,
                         const CachePaths& paths, const std::stop_token& stop) const;
  // `missing` are the files that the cache has no bytes of.
  void download(const HubSource& source, const CachePaths& paths, const Snapshot& snapshot,
                std::vector<RepositoryFile> missing, const PullObserver& observer,
                const std::stop_token& stop) const;

  HubSettings settings_;
  TransportFactory transports_;
  DownloadOptions options_;
};

}  // namespace trtmc
