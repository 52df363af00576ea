// A lock that excludes every other program that downloads the same blob, huggingface_hub too: it
// locks the same files in the same way (flock).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>

namespace trtmc {

class CacheLock {
 public:
  // Waits until the lock is free; calls `on_wait` once if it is not so at first. Throws
  // DownloadStopped when `stop` is requested. Where the file system has no locks nothing is locked:
  // a blob's hash is checked in any case.
  CacheLock(const std::filesystem::path& path, const std::stop_token& stop,
            const std::function<void()>& on_wait);
  // Nothing if another holds it.
  static std::optional<CacheLock> try_lock(const std::filesystem::path& path);

  CacheLock(CacheLock&& other) noexcept;
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();

 private:
  explicit CacheLock(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace trtmc
