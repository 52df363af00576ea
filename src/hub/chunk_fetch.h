// Fetches parts of one file from the hub into its partial file, however the server behaves: cuts,
// stalls, answers of another length, ranges that it ignores.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>

#include "hub/hub_connection.h"
#include "hub/partial_file.h"

namespace trtmc {

// A file that is being fetched, shared by the threads that fetch its chunks.
struct FileFetch {
  std::string path;  // On the server.
  uint64_t bytes;
  PartialFile& partial;
  std::atomic<uint64_t>& received;  // Counts the bytes that are there, of all files.
  // The server has answered a range with the whole file: chunks are no use, fetch_whole() is.
  std::atomic<bool> ranges_ignored = false;
};

// Fetches what is missing of a chunk, unless ranges turn out to be ignored. Throws as
// download_blobs().
void fetch_chunk(HubConnection& connection, FileFetch& file, size_t chunk,
                 const RetryPolicy& policy, const std::stop_token& stop);

// Fetches the file in one piece. No chunk of it may be under way.
void fetch_whole(HubConnection& connection, FileFetch& file, const RetryPolicy& policy,
                 const std::stop_token& stop);

}  // namespace trtmc
