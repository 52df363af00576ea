// Fetches files of one commit into the cache's blobs: in chunks, over several connections, resumed
// where an earlier run stopped, and checked against their digests.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "hub/cache_paths.h"
#include "hub/hub_connection.h"
#include "hub/repository_listing.h"
#include "hub/retry.h"

namespace trtmc {

struct DownloadOptions {
  int connections = 8;
  uint64_t chunk_bytes = 32 << 20;
  RetryPolicy retry;
};

// Makes one connection; its transport's requests end when `stop` is requested.
using ConnectionFactory = std::function<std::unique_ptr<HubConnection>(std::stop_token stop)>;

// Bytes that are there, and that will be. Called from the calling thread, some ten times a second.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// After it every file's blob is in the cache. `url_folder` is the path that the files' names are
// appended to: "/OWNER/NAME/resolve/COMMIT/". Throws kCorrupt for bytes that are not what was
// announced, kExhausted for a full disk, kNotFound where the server fails for good, DownloadStopped
// when `stop` is requested; what has arrived by then stays and is resumed by the next call.
void download_blobs(const CachePaths& cache, const std::string& url_folder,
                    std::span<const RepositoryFile> files, const DownloadOptions& options,
                    const ConnectionFactory& connect, const std::stop_token& stop,
                    const DownloadProgress& progress);

}  // namespace trtmc
