#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/mapping_list.h"
#include "base/sync_name.h"

namespace trtmc {

Error system_error(const std::filesystem::path& path, std::string_view doing, int number) {
  ErrorCode code = ErrorCode::kInvalidArgument;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::kNotFound;
  if (number == ENOSPC || number == EDQUOT || number == ENOMEM || number == EFBIG) {
    code = ErrorCode::kExhausted;
  }
  if (number == EIO) code = ErrorCode::kCorrupt;  // As a page of a mapping that can't be read.
  return {code, fmt::format("{}: {}: {}", path.string(), doing, std::strerror(number))};
}

namespace {

constexpr uint64_t kEarlyFlushBytes = 256 << 10;

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Devices, pipes and folders are not ours to put a file in the place of.
void refuse_target(const std::filesystem::path& path, AtomicFile::IfExists if_exists) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    throw system_error(path, "can't be looked up", errno);
  }
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: is a folder", path.string()));
  }
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path.string()));
  }
  if (if_exists == AtomicFile::IfExists::kRefuse) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: exists already", path.string()),
                "use --force to replace it");
  }
}

[[noreturn]] void refuse_replacement(const std::filesystem::path& path) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: appeared meanwhile", path.string()),
              "use --force to replace it");
}

// Gives the file at `from` the name `to`, which must be free. File systems without hard links have
// a rename that does not replace; those without either only a look before the rename.
void rename_to_free(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return;
  }
  if (errno == EEXIST) refuse_replacement(to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EEXIST) refuse_replacement(to);
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) refuse_replacement(to);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw system_error(to, "can't rename into place", errno);
  }
}

}  // namespace

bool has_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw system_error(path, "can't look for it", errno);
  }
  if (::stat(path.c_str(), &status) != 0) throw system_error(path, "can't follow the link", errno);
  if (S_ISREG(status.st_mode)) return true;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path.string()));
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // Opening a pipe that nobody writes to would wait for ever; a regular file never waits.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) throw system_error(path, "can't open", errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw system_error(path, "can't read its size", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path.string()));
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) throw system_error(path, "can't map", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
  note_mapping(bytes_, path_.string());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::contains(std::span<const std::byte> part) const {
  // Addresses of different objects have an order only as std::less sees it.
  const std::less<const std::byte*> before;
  return !before(part.data(), bytes_.data()) &&
         !before(bytes_.data() + bytes_.size(), part.data() + part.size());
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<size_t>(part.data() - bytes_.data());
  TRTMC_CHECK(offset <= bytes_.size() && part.size() <= bytes_.size() - offset,
              "not a part of the mapping");
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + part.size()) / page * page;
  if (begin >= end) return;
  // Advice: if it is not taken, only memory is lost.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

AtomicFile::AtomicFile(std::filesystem::path path, uint64_t size, IfExists if_exists)
    : path_(std::move(path)), if_exists_(if_exists) {
  refuse_target(path_, if_exists_);
  const std::filesystem::path folder = folder_of(path_);
  fd_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary_ = folder / fmt::format(".{}.partial-{}", path_.filename().string(), ::getpid());
    fd_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  }
  if (fd_ < 0) throw system_error(folder, "can't write here", errno);
  if (size == 0) return;
  const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(size));
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  throw system_error(path_, fmt::format("can't reserve {} bytes", size), error);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  const uint64_t start = offset;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw system_error(path_, "can't write", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  // Large parts start their way to the disk at once, beside the caller's further work, so that
  // commit() has little left to wait for. Advice: its failure would be commit()'s to find.
  if (offset - start >= kEarlyFlushBytes) {
    ::sync_file_range(fd_, static_cast<off_t>(start), static_cast<off_t>(offset - start),
                      SYNC_FILE_RANGE_WRITE);
  }
}

// linkat() can't replace, so a replacement goes through a hidden name for the moment of the rename.
void AtomicFile::link_unnamed() const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  if (errno != EEXIST || if_exists_ == IfExists::kRefuse) {
    if (errno == EEXIST) refuse_replacement(path_);
    throw system_error(path_, "can't give the file its name", errno);
  }
  const std::filesystem::path hidden =
      folder_of(path_) / fmt::format(".{}.new-{}", path_.filename().string(), ::getpid());
  ::unlink(hidden.c_str());
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, hidden.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    throw system_error(hidden, "can't give the file its name", errno);
  }
  if (::rename(hidden.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  ::unlink(hidden.c_str());
  throw system_error(path_, "can't replace", error);
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) throw system_error(path_, "can't flush to disk", errno);
  if (temporary_.empty()) {
    link_unnamed();
  } else {
    if (if_exists_ == IfExists::kRefuse) {
      rename_to_free(temporary_, path_);
    } else if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      throw system_error(path_, "can't rename into place", errno);
    }
    temporary_.clear();
  }
  sync_name(path_);
}

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const bool standard_input = path == "-";
  const Descriptor fd(standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw system_error(path, "can't open", errno);
  std::string text;
  for (size_t used = 0;;) {
    text.resize(std::max<size_t>(used * 2, 65536));
    const ssize_t got = ::read(fd.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(standard_input ? "standard input" : path, "can't read", errno);
    used += static_cast<size_t>(got);
    if (used > max_bytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: more than the {} bytes that are read of such a file",
                              standard_input ? "standard input" : path.string(), max_bytes));
    }
    if (got == 0) {
      text.resize(used);
      return text;
    }
  }
}

}  // namespace trtmc
