// Files: mapped for reading, and written so that a reader sees the old file or the new one whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace trtmc {

// What a call of the system that failed with errno `number` means: "<path>: <doing>: <reason>".
Error system_error(const std::filesystem::path& path, std::string_view doing, int number);

// Whether a file stands at `path`. Only its absence is "no": a link that leads nowhere, a folder or
// a pipe in its place, or what can't be looked at is an error, or it would pass for absent.
bool has_file(const std::filesystem::path& path);

// A read-only mapping of a whole file. Moves, does not copy. Throws kNotFound, or kInvalidArgument
// for what is not a regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Whether `part` is a part of bytes().
  bool contains(std::span<const std::byte> part) const;
  // Gives back the memory of `part` of bytes(), whole pages of it: for who reads a large file once.
  // Reading it again reads the file again.
  void release(std::span<const std::byte> part) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// A file under construction. Until commit() nothing stands at `path`, and nothing is left behind if
// the program dies: the bytes live in an unnamed file of the same folder (where the file system has
// no unnamed files, in a hidden one that the destructor removes).
class AtomicFile {
 public:
  enum class IfExists { kRefuse, kReplace };

  // Reserves `size` bytes at once, so that a full disk is found before the work: kExhausted.
  // Throws kInvalidArgument if `path` exists and is not to be replaced or is no regular file,
  // kNotFound if its folder does not exist.
  AtomicFile(std::filesystem::path path, uint64_t size, IfExists if_exists);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Writes all of `bytes` at `offset`. Calls from several threads may overlap in time.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  // Flushes to disk and gives the file its name.
  void commit();

 private:
  void link_unnamed() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // Empty for an unnamed file.
  IfExists if_exists_;
  int fd_ = -1;
};

// The whole file as text, refused with kInvalidArgument if it has more than `max_bytes`. A pipe or
// standard input ("-") is read to its end under the same limit.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 30);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace trtmc
