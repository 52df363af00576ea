// The bytes of one fuzz input as decisions, taken one after the other. When none are left every
// decision is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"

namespace trtmc {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t byte() { return number<uint8_t>(); }
  // 0 to `count` - 1; `count` is 1 to 256.
  size_t below(size_t count) { return byte() % count; }
  bool chance() { return byte() % 2 == 1; }

  // The next bytes as they are.
  template <typename T>
  T number() {
    T value{};
    const std::string_view bytes = text(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::string_view text(size_t most) {
    const std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return text(rest_.size()); }

  // What comes before the next `separator`, which is taken too; without one, the rest.
  std::string_view until(std::string_view separator) {
    const size_t end = rest_.find(separator);
    if (end == rest_.npos) return rest();
    const std::string_view taken = text(end);
    rest_.remove_prefix(separator.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// A file of the source tree that a target needs at its start.
inline std::string source_file(std::string_view name) {
  return read_file(std::string(TRTMC_SOURCE_DIR "/") + std::string(name));
}

}  // namespace trtmc
