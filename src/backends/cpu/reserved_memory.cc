#include "backends/cpu/reserved_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace trtmc::cpu {

ReservedMemory::ReservedMemory(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("the system refused to reserve {} bytes of memory", bytes_),
                "ask for a shorter context or less KV memory");
  }
  data_ = static_cast<std::byte*>(memory);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace trtmc::cpu
