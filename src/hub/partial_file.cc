#include "hub/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/file.h"

namespace trtmc {
namespace {

constexpr size_t kCountBytes = 8;

}  // namespace

PartialFile::PartialFile(std::filesystem::path path, uint64_t bytes, uint64_t chunk_bytes)
    : path_(std::move(path)),
      bytes_(bytes),
      chunk_bytes_(chunk_bytes),
      done_((bytes + chunk_bytes - 1) / chunk_bytes, 0) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) throw system_error(path_, "can't write", errno);
  const uint64_t whole = bytes_ + done_.size() * kCountBytes;
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && static_cast<uint64_t>(status.st_size) == whole) load_counts();
  if (total_done() > 0 || whole == 0) return;
  // Emptied first, so that the counts begin as zeros.
  int error = ::ftruncate(fd_, 0) == 0 ? 0 : errno;
  if (error == 0) error = ::posix_fallocate(fd_, 0, static_cast<off_t>(whole));
  if (error == EOPNOTSUPP || error == EINVAL) {
    error = ::ftruncate(fd_, static_cast<off_t>(whole)) == 0 ? 0 : errno;
  }
  if (error == 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
  throw system_error(path_, fmt::format("can't reserve {} bytes", whole), error);
}

PartialFile::~PartialFile() { ::close(fd_); }

uint64_t PartialFile::chunk_end(size_t chunk) const {
  return std::min(bytes_, chunk_begin(chunk) + chunk_bytes_);
}

void PartialFile::load_counts() {
  std::vector<unsigned char> counts(done_.size() * kCountBytes);
  const ssize_t got = ::pread(fd_, counts.data(), counts.size(), static_cast<off_t>(bytes_));
  if (got != static_cast<ssize_t>(counts.size())) return;
  for (size_t chunk = 0; chunk < done_.size(); ++chunk) {
    uint64_t count = 0;
    for (size_t i = kCountBytes; i-- > 0;) count = count << 8 | counts[chunk * kCountBytes + i];
    // A count that can't be is none: the file is of another program or another layout.
    if (count > chunk_end(chunk) - chunk_begin(chunk)) return done_.assign(done_.size(), 0);
    done_[chunk] = count;
  }
}

uint64_t PartialFile::done(size_t chunk) const {
  const std::lock_guard lock(mutex_);
  return done_[chunk];
}

uint64_t PartialFile::total_done() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(done_.begin(), done_.end(), uint64_t{0});
}

void PartialFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw system_error(path_, "can't write", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void PartialFile::store_count(size_t chunk, uint64_t count) {
  std::array<std::byte, kCountBytes> text;
  for (size_t i = 0; i < kCountBytes; ++i) text[i] = static_cast<std::byte>(count >> (8 * i));
  write_at(bytes_ + chunk * kCountBytes, text);
  const std::lock_guard lock(mutex_);
  done_[chunk] = count;
}

void PartialFile::append(size_t chunk, std::span<const std::byte> bytes) {
  const uint64_t before = done(chunk);
  TRTMC_CHECK(bytes.size() <= chunk_end(chunk) - chunk_begin(chunk) - before, "a chunk overflows");
  write_at(chunk_begin(chunk) + before, bytes);
  store_count(chunk, before + bytes.size());
}

void PartialFile::restart(size_t chunk) { store_count(chunk, 0); }

void PartialFile::finish() {
  TRTMC_CHECK(complete(), "the file is finished before it is complete");
  if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 || ::fsync(fd_) != 0) {
    throw system_error(path_, "can't flush to disk", errno);
  }
}

}  // namespace trtmc
