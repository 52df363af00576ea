#include "bundle/quant_scheme.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace trtmc {
namespace {

struct QuantScheme {
  std::optional<DType> layers;      // The matrices of the layers.
  std::optional<DType> vocabulary;  // Embedding and output projection.
};

// What a token is and which comes next goes through one matrix of the vocabulary; an error there
// meets nothing that could make up for it, and small models feel it most.
constexpr std::array<std::string_view, 3> kNames{"none", "q8", "q4"};
constexpr std::array<QuantScheme, kNames.size()> kSchemes{{
    {.layers = {}, .vocabulary = {}},
    {.layers = DType::kQ8, .vocabulary = DType::kQ8},
    {.layers = DType::kQ4, .vocabulary = DType::kQ8},
}};

}  // namespace

std::span<const std::string_view> quant_schemes() { return kNames; }

bool is_quant_scheme(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<DType> quantized_type(std::string_view scheme, Role role) {
  const auto* const name = std::find(kNames.begin(), kNames.end(), scheme);
  TRTMC_CHECK(name != kNames.end(), "not a quantisation scheme");
  if (is_norm(role)) return std::nullopt;
  const QuantScheme& types = kSchemes[static_cast<size_t>(name - kNames.begin())];
  const bool vocabulary = role == Role::kEmbedding || role == Role::kLmHead;
  return vocabulary ? types.vocabulary : types.layers;
}

}  // namespace trtmc
