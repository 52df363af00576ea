#include "bundle/quant_scheme.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace trtmc {
namespace {

struct QuantScheme {
  std::string_view name;
  std::optional<DType> attention, mlp;  // The matrices of the layers.
  std::optional<DType> vocabulary;      // Embedding and output projection.
};

// What a token is and which comes next goes through one matrix of the vocabulary; an error there
// meets nothing that could make up for it, and small models feel it most. Of the layers, attention
// gains most by more bits for the few weights that it has: docs/quantization.md has figures.
constexpr std::array<QuantScheme, 5> kSchemes{{
    {.name = "none", .attention = {}, .mlp = {}, .vocabulary = {}},
    {.name = "q8", .attention = DType::kQ8, .mlp = DType::kQ8, .vocabulary = DType::kQ8},
    {.name = "q6", .attention = DType::kQ6, .mlp = DType::kQ6, .vocabulary = DType::kQ8},
    {.name = "q4_q6", .attention = DType::kQ6, .mlp = DType::kQ4, .vocabulary = DType::kQ8},
    {.name = "q4", .attention = DType::kQ4, .mlp = DType::kQ4, .vocabulary = DType::kQ8},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kSchemes.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kSchemes[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> quant_schemes() { return kNames; }

bool is_quant_scheme(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<DType> quantized_type(std::string_view scheme, Role role) {
  const auto* const types = std::find_if(kSchemes.begin(), kSchemes.end(),
                                         [&](const auto& other) { return other.name == scheme; });
  TRTMC_CHECK(types != kSchemes.end(), "not a quantisation scheme");
  switch (role) {
    case Role::kEmbedding:
    case Role::kLmHead:
      return types->vocabulary;
    case Role::kQProj:
    case Role::kKProj:
    case Role::kVProj:
    case Role::kOProj:
      return types->attention;
    case Role::kGateProj:
    case Role::kUpProj:
    case Role::kDownProj:
      return types->mlp;
    default:  // A norm.
      return std::nullopt;
  }
}

}  // namespace trtmc
