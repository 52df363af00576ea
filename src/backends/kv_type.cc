#include "backends/kv_type.h"

#include <algorithm>

namespace trtmc {
namespace {

constexpr std::string_view kNames[] = {"f32", "bf16", "q8", "fp8"};  // In the order of the types.

}  // namespace

std::string_view kv_type_name(KvType type) { return kNames[static_cast<int>(type)]; }

std::span<const std::string_view> kv_type_names() { return kNames; }

std::optional<KvType> parse_kv_type(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<KvType>(found - kNames);
}

}  // namespace trtmc
