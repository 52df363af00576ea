#include "backends/cpu/reserved_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace trtmc::cpu {
namespace {

// Of x86-64, and of 64-bit ARM with pages of 4 KiB.
constexpr size_t kHugePage = size_t{2} << 20;
// From here on a page that is taken in part is little of the whole.
constexpr size_t kWorthHugePages = 32 * kHugePage;

}  // namespace

ReservedMemory::ReservedMemory(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("the system refused to reserve {} bytes of memory", bytes_),
                "ask for a shorter context or less KV memory");
  }
  data_ = static_cast<std::byte*>(memory);
  // Attention reads each head's part of many blocks, few pages at a time, and every page's address
  // has to be looked up. A wish: a system that refuses it gives small pages.
  if (bytes_ >= kWorthHugePages) madvise(memory, bytes_, MADV_HUGEPAGE);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace trtmc::cpu
