// Names on the disk: a file's bytes are there after its own fsync, its name after that of its
// folder.
#pragma once

#include <filesystem>

namespace trtmc {

// The folder that `path` is a name in.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Has the disk keep the name that was made or renamed at `path`. A folder that can't be opened or
// synced is no failure: what stands at `path` is whole either way.
void sync_name(const std::filesystem::path& path);

}  // namespace trtmc
