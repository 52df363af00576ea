#include "tests/faults/failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> g_first = kNever, g_last = kNever, g_count = 0;
thread_local int t_spared = 0;

bool fails() {
  if (g_first == kNever || t_spared > 0) return false;
  const int64_t number = g_count++;
  return number >= g_first && number <= g_last;
}

void* allocate(size_t size) noexcept {
  return fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}

}  // namespace

// The forms that the others come from, but for those with an alignment.
void* operator new(size_t size) {
  for (;;) {
    if (void* memory = allocate(size)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace trtmc {

FailingMemory::FailingMemory(int64_t first, Which which) {
  g_count = 0;
  g_last = which == Which::kOne ? first : kNever;
  g_first = first;
}

FailingMemory::~FailingMemory() { g_first = kNever; }

bool FailingMemory::has_failed() const { return g_count > g_first; }

SparedThread::SparedThread() { ++t_spared; }

SparedThread::~SparedThread() { --t_spared; }

}  // namespace trtmc
