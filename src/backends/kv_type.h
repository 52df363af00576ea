// How keys and values are kept between steps.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace trtmc {

// Each key and value of a head as bytes of one scale, kQ8 whole numbers (backends/kv_bytes.h), kFp8
// floats (backends/kv_fp8.h).
enum class KvType { kF32, kBF16, kQ8, kFp8 };

std::string_view kv_type_name(KvType type);  // "f32", "bf16", "q8", "fp8"
std::span<const std::string_view> kv_type_names();
std::optional<KvType> parse_kv_type(std::string_view name);

}  // namespace trtmc
