// A layer between a program and its files, put there by LD_PRELOAD: one kind of call fails on files
// whose path holds a text. TRTMC_FAULT says which, as "CALL:TEXT:NUMBER"; the number is errno. For
// mmap the pages from the middle on can't be read, as those of a disk that fails.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <typename Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<size_t>(size > 0 ? size : 0)};
}

// The errno that `call` is to fail with on the file, or 0.
int fault_of(std::string_view call, int fd) {
  const char* variable = std::getenv("TRTMC_FAULT");
  if (variable == nullptr) return 0;
  const std::string_view fault = variable;
  const size_t text = fault.find(':') + 1, number = fault.rfind(':') + 1;
  if (fault.substr(0, text - 1) != call) return 0;
  if (path_of(fd).find(fault.substr(text, number - 1 - text)) == std::string::npos) return 0;
  return std::atoi(fault.data() + number);
}

// From its middle on the mapping becomes one of an empty file, beyond whose end nothing can be
// read.
void break_mapping(void* address, size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t healthy = size / 2 / page * page;
  const int empty = memfd_create("failing", MFD_CLOEXEC);
  original<void*(void*, size_t, int, int, int, off_t)>("mmap")(
      static_cast<char*>(address) + healthy, size - healthy, PROT_READ, MAP_SHARED | MAP_FIXED,
      empty, 0);
  close(empty);
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* data, size_t size) {
  if ((errno = fault_of("read", fd)) != 0) return -1;
  return original<ssize_t(int, void*, size_t)>("read")(fd, data, size);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  if ((errno = fault_of("pread", fd)) != 0) return -1;
  return original<ssize_t(int, void*, size_t, off_t)>("pread")(fd, data, size, offset);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  if ((errno = fault_of("pwrite", fd)) != 0) return -1;
  return original<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, data, size, offset);
}

int fsync(int fd) {
  if ((errno = fault_of("fsync", fd)) != 0) return -1;
  return original<int(int)>("fsync")(fd);
}

int posix_fallocate(int fd, off_t offset, off_t size) noexcept(false) {
  if (const int fault = fault_of("posix_fallocate", fd)) return fault;
  return original<int(int, off_t, off_t)>("posix_fallocate")(fd, offset, size);
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  void* mapped = original<void*(void*, size_t, int, int, int, off_t)>("mmap")(
      address, size, protection, flags, fd, offset);
  if (mapped != MAP_FAILED && fd >= 0 && fault_of("mmap", fd) != 0) break_mapping(mapped, size);
  return mapped;
}
}
