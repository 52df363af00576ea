// The digest of a file's bytes, to hold against what the hub announced.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "hub/repository_listing.h"

namespace trtmc {

// What the first `bytes` bytes of the file hash to, in hexadecimal. Throws DownloadStopped when
// `stop` is requested, kCorrupt if the file has fewer bytes.
std::string file_digest(const std::filesystem::path& path, uint64_t bytes, FileDigest::Kind kind,
                        const std::stop_token& stop);

}  // namespace trtmc
