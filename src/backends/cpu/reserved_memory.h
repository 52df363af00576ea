// Address space for `bytes` bytes that read as zero; memory is taken page by page as they are first
// written. Pages are huge ones where the system has them and the address space is large enough, so
// up to 2 MiB more than what was written may be taken at each place where writing began or ended.
#pragma once

#include <cstddef>
#include <utility>

namespace trtmc::cpu {

class ReservedMemory {
 public:
  // Throws kExhausted if the system refuses.
  explicit ReservedMemory(size_t bytes);
  ReservedMemory(ReservedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ReservedMemory& operator=(ReservedMemory&&) = delete;
  ~ReservedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace trtmc::cpu
