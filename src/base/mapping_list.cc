#include "base/mapping_list.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace trtmc {
namespace {

// Free while `path` is null, being filled in or cleared while `end` is 0.
struct Slot {
  std::atomic<char*> path = nullptr;
  std::atomic<uintptr_t> begin = 0, end = 0;
};
std::array<Slot, 1024> g_slots;

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

void note_mapping(std::span<const std::byte> mapping, const std::string& path) {
  char* const copy = ::strdup(path.c_str());
  if (copy == nullptr) return;
  for (Slot& slot : g_slots) {
    char* free = nullptr;
    if (!slot.path.compare_exchange_strong(free, copy)) continue;
    slot.begin = number_of(mapping.data());
    slot.end = number_of(mapping.data()) + mapping.size();
    return;
  }
  std::free(copy);
}

void forget_mapping(std::span<const std::byte> mapping) {
  for (Slot& slot : g_slots) {
    if (slot.end == 0 || slot.begin != number_of(mapping.data())) continue;
    slot.end = 0;
    std::free(slot.path.exchange(nullptr));
    return;
  }
}

const char* mapped_path_at(const void* address) {
  for (const Slot& slot : g_slots) {
    if (number_of(address) >= slot.begin && number_of(address) < slot.end) return slot.path;
  }
  return nullptr;
}

}  // namespace trtmc
