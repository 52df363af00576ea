// How keys and values are kept between steps.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace trtmc {

// kQ8: each key and value of a head as bytes of one scale (backends/kv_bytes.h).
enum class KvType { kF32, kBF16, kQ8 };

std::string_view kv_type_name(KvType type);  // "f32", "bf16", "q8"
std::span<const std::string_view> kv_type_names();
std::optional<KvType> parse_kv_type(std::string_view name);

}  // namespace trtmc
