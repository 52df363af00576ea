#include "hub/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "hub/cache_paths.h"
#include "hub/retry.h"

namespace trtmc {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};
constexpr mode_t kSharedMode = 0664;  // As huggingface_hub, for caches that a group shares.

}  // namespace

std::optional<CacheLock> CacheLock::try_lock(const std::filesystem::path& path) {
  make_folder(path.parent_path());
  while (true) {
    CacheLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kSharedMode));
    if (lock.fd_ < 0) {
      throw system_error(path, "can't open", errno);
    }
    while (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return {};
      return lock;
    }
    // Another may have removed the file between the two calls: its lock would then exclude nobody.
    struct stat opened {
    }, named{};
    if (::fstat(lock.fd_, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      return lock;
    }
  }
}

CacheLock::CacheLock(const std::filesystem::path& path, const std::stop_token& stop,
                     const std::function<void()>& on_wait) {
  bool told = false;
  while (true) {
    if (auto lock = try_lock(path)) {
      fd_ = std::exchange(lock->fd_, -1);
      return;
    }
    if (!std::exchange(told, true)) on_wait();
    wait_unless_stopped(kPollInterval, stop);
  }
}

CacheLock::CacheLock(CacheLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

CacheLock::~CacheLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace trtmc
