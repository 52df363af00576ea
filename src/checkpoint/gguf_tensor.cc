#include "checkpoint/gguf_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trtmc {
namespace {

// What follows "blk.<layer>." and what follows "model.layers.<layer>.".
constexpr std::pair<std::string_view, std::string_view> kLayerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr std::pair<std::string_view, std::string_view> kModelNames[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};
constexpr std::string_view kLayerPrefix = "blk.";

// "blk.3.attn_q.weight" in its parts; the layer is empty for another form.
struct LayerName {
  std::string_view layer, stem, ending;
};

LayerName split_name(std::string_view name) {
  if (!name.starts_with(kLayerPrefix)) return {};
  const std::string_view rest = name.substr(kLayerPrefix.size());
  const size_t first = rest.find('.'), last = rest.rfind('.');
  if (first == std::string_view::npos || first == last) return {};
  return {rest.substr(0, first), rest.substr(first + 1, last - first - 1), rest.substr(last)};
}

// How many values of a matrix are looked at together: as many as stay in a cache.
constexpr size_t kValuesAtOnce = size_t{1} << 14;

bool survives_bf16(float value) { return (std::bit_cast<uint32_t>(value) & 0xFFFF) == 0; }
bool survives_f16(float value) {
  return std::bit_cast<uint32_t>(f16_to_float(float_to_f16(value))) ==
         std::bit_cast<uint32_t>(value);
}

// The narrowest type that holds every value, bit for bit.
DType narrowest_type(const GgufTensor& tensor) {
  const GgmlType& type = *tensor.type;
  bool bf16 = true, f16 = true;
  const size_t blocks_at_once = kValuesAtOnce / static_cast<size_t>(type.block_elements);
  const size_t blocks = tensor.bytes.size() / type.block_bytes;
  std::vector<float> values;
  for (size_t block = 0; block < blocks && (bf16 || f16); block += blocks_at_once) {
    const size_t count = std::min(blocks_at_once, blocks - block);
    values.resize(count * static_cast<size_t>(type.block_elements));
    decode_blocks(type, tensor.bytes.subspan(block * type.block_bytes, count * type.block_bytes),
                  values);
    bf16 = bf16 && std::all_of(values.begin(), values.end(), survives_bf16);
    f16 = f16 && std::all_of(values.begin(), values.end(), survives_f16);
  }
  return bf16 ? DType::kBF16 : f16 ? DType::kF16 : DType::kF32;
}

void store(std::span<const float> values, DType dtype, std::span<std::byte> out) {
  if (dtype == DType::kF32) {
    std::memcpy(out.data(), values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits =
        dtype == DType::kBF16 ? float_to_bf16(values[i]) : float_to_f16(values[i]);
    std::memcpy(&out[i * sizeof bits], &bits, sizeof bits);
  }
}

// Where row `row` of Transformers' order lies: value i of a head's first half and of its second one
// are neighbours in the file.
int64_t row_in_file(int64_t row, int64_t head_dim) {
  if (head_dim == 0) return row;
  const int64_t half = head_dim / 2, within = row % head_dim;
  return row - within + within % half * 2 + within / half;
}

// 0 for tensors whose rows lie as they should.
int64_t permuted_head_dim(std::string_view name, const GgufTensor& tensor, const GgufHeads& heads) {
  const std::string_view stem = split_name(name).stem;
  if (stem != "attn_q" && stem != "attn_k") return 0;
  const int64_t count = stem == "attn_q" ? heads.query : heads.key;
  const int64_t rows = tensor.shape[0];
  if (rows % count != 0 || rows / count % 2 != 0) {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("tensor \"{}\": {} rows are no {} heads of an even size", name, rows, count));
  }
  return rows / count;
}

// Row after row of a matrix, or element after element of a vector, found and decoded.
std::function<void(int64_t, std::span<std::byte>)> row_maker(const GgufTensor& tensor, DType dtype,
                                                             int64_t head_dim) {
  size_t row_blocks = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) {
    const auto divisor = i + 1 == tensor.shape.size() ? tensor.type->block_elements : 1;
    row_blocks *= static_cast<size_t>(tensor.shape[i] / divisor);
  }
  return
      [type = tensor.type, bytes = tensor.bytes, row_bytes = row_blocks * tensor.type->block_bytes,
       dtype, head_dim](int64_t row, std::span<std::byte> out) {
        const auto at = static_cast<size_t>(row_in_file(row, head_dim)) * row_bytes;
        const std::span<const std::byte> blocks = bytes.subspan(at, row_bytes);
        if (type->plain == dtype) {
          std::memcpy(out.data(), blocks.data(), blocks.size());
          return;
        }
        thread_local std::vector<float> values;
        values.resize(out.size() / element_bytes(dtype));
        decode_blocks(*type, blocks, values);
        store(values, dtype, out);
      };
}

}  // namespace

std::string gguf_checkpoint_name(std::string_view name) {
  for (const auto& [ours, theirs] : kModelNames) {
    if (name == ours) return std::string(theirs);
  }
  const LayerName parts = split_name(name);
  for (const auto& [ours, theirs] : kLayerNames) {
    if (!parts.layer.empty() && parts.stem == ours)
      return fmt::format("model.layers.{}.{}{}", parts.layer, theirs, parts.ending);
  }
  return std::string(name);
}

CheckpointTensor gguf_checkpoint_tensor(std::string_view name, const GgufTensor& tensor,
                                        const GgufHeads& heads) {
  const GgmlType& type = *tensor.type;
  const bool is_vector = tensor.shape.size() == 1;
  if (is_vector && !type.plain) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("tensor \"{}\": a vector of {}, expected F32, F16 or BF16", name, type.name));
  }
  const bool is_narrow = type.plain && *type.plain != DType::kF32;
  const DType dtype = is_vector || is_narrow ? *type.plain : narrowest_type(tensor);
  const int64_t head_dim = permuted_head_dim(name, tensor, heads);
  CheckpointTensor result{
      .dtype = dtype, .shape = tensor.shape, .encoding = type.name, .bytes = tensor.bytes};
  if (head_dim != 0 || type.plain != dtype) result.make_row = row_maker(tensor, dtype, head_dim);
  return result;
}

}  // namespace trtmc
