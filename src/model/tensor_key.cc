#include "model/tensor_key.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/check.h"

namespace trtmc {
namespace {

constexpr std::string_view kLayerPrefix = "layers.";

constexpr std::array<std::string_view, 12> kRoleNames{
    "embedding", "final_norm", "lm_head",  "attention_norm", "q_proj",  "k_proj",
    "v_proj",    "o_proj",     "mlp_norm", "gate_proj",      "up_proj", "down_proj"};

// In the order in which a layer reads them.
constexpr std::array kLayerRoles{Role::kAttentionNorm, Role::kQProj,  Role::kKProj,
                                 Role::kVProj,         Role::kOProj,  Role::kMlpNorm,
                                 Role::kGateProj,      Role::kUpProj, Role::kDownProj};

bool belongs_to_layer(Role role) { return role >= Role::kAttentionNorm; }

std::optional<Role> parse_role(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (kRoleNames[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const TensorKey& key) {
  const std::string_view role = kRoleNames[static_cast<size_t>(key.role)];
  if (!belongs_to_layer(key.role)) return std::string(role);
  return fmt::format("{}{}.{}", kLayerPrefix, key.layer, role);
}

std::optional<TensorKey> parse_tensor_key(std::string_view name) {
  if (!name.starts_with(kLayerPrefix)) {
    const std::optional<Role> role = parse_role(name);
    if (!role || belongs_to_layer(*role)) return std::nullopt;
    return TensorKey{*role};
  }
  const std::string_view rest = name.substr(kLayerPrefix.size());
  TensorKey key{};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), key.layer);
  if (error != std::errc() || key.layer < 0) return std::nullopt;
  const std::string_view tail = rest.substr(static_cast<size_t>(end - rest.data()));
  if (!tail.starts_with('.')) return std::nullopt;
  const std::optional<Role> role = parse_role(tail.substr(1));
  if (!role || !belongs_to_layer(*role)) return std::nullopt;
  key.role = *role;
  // One name a key: no "layers.03.q_proj".
  if (to_string(key) != name) return std::nullopt;
  return key;
}

bool is_norm(Role role) {
  return role == Role::kFinalNorm || role == Role::kAttentionNorm || role == Role::kMlpNorm;
}

std::vector<TensorKey> tensor_keys(const DecoderSpec& spec) {
  std::vector<TensorKey> keys{{Role::kEmbedding}};
  for (int layer = 0; layer < spec.num_layers(); ++layer) {
    for (const Role role : kLayerRoles) keys.push_back({role, layer});
  }
  keys.push_back({Role::kFinalNorm});
  if (!spec.tied_embeddings) keys.push_back({Role::kLmHead});
  return keys;
}

Shape tensor_shape(const DecoderSpec& spec, const TensorKey& key) {
  switch (key.role) {
    case Role::kEmbedding:
    case Role::kLmHead:
      return {spec.vocab_size, spec.hidden_size};
    case Role::kFinalNorm:
    case Role::kAttentionNorm:
    case Role::kMlpNorm:
      return {spec.hidden_size};
    case Role::kQProj:
      return {spec.q_width(), spec.hidden_size};
    case Role::kKProj:
    case Role::kVProj:
      return {spec.kv_width(), spec.hidden_size};
    case Role::kOProj:
      return {spec.hidden_size, spec.q_width()};
    case Role::kGateProj:
    case Role::kUpProj:
      return {spec.intermediate_size, spec.hidden_size};
    case Role::kDownProj:
      return {spec.hidden_size, spec.intermediate_size};
  }
  TRTMC_CHECK(false, "not a role");
}

}  // namespace trtmc
