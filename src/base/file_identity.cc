#include "base/file_identity.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace trtmc {

FileIdentity identity_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw system_error(path, "can't be looked up", errno);
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = status.st_size,
          .written_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
}

}  // namespace trtmc
