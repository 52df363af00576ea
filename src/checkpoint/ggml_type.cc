#include "checkpoint/ggml_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "checkpoint/ggml_blocks.h"

namespace trtmc {
namespace {

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, DType::kF32, decode_f32},     {1, "F16", 1, 2, DType::kF16, decode_f16},
    {2, "Q4_0", 32, 18, {}, decode_q4_0},          {3, "Q4_1", 32, 20, {}, decode_q4_1},
    {6, "Q5_0", 32, 22, {}, decode_q5_0},          {7, "Q5_1", 32, 24, {}, decode_q5_1},
    {8, "Q8_0", 32, 34, {}, decode_q8_0},          {12, "Q4_K", 256, 144, {}, decode_q4_k},
    {13, "Q5_K", 256, 176, {}, decode_q5_k},       {14, "Q6_K", 256, 210, {}, decode_q6_k},
    {30, "BF16", 1, 2, DType::kBF16, decode_bf16},
};

// Those that are known and not read, for the message that refuses them.
constexpr std::pair<uint32_t, std::string_view> kOtherNames[] = {
    {4, "Q4_2"},      {5, "Q4_3"},      {9, "Q8_1"},      {10, "Q2_K"},    {11, "Q3_K"},
    {15, "Q8_K"},     {16, "IQ2_XXS"},  {17, "IQ2_XS"},   {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"},   {21, "IQ3_S"},    {22, "IQ2_S"},    {23, "IQ4_XS"},  {24, "I8"},
    {25, "I16"},      {26, "I32"},      {27, "I64"},      {28, "F64"},     {29, "IQ1_M"},
    {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"},   {35, "TQ2_0"},
    {39, "MXFP4"},    {40, "NVFP4"}};

}  // namespace

const GgmlType* find_ggml_type(uint32_t number) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const GgmlType& type) { return type.number == number; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string ggml_type_name(uint32_t number) {
  if (const GgmlType* type = find_ggml_type(number)) return std::string(type->name);
  for (const auto& [other, name] : kOtherNames) {
    if (other == number) return std::string(name);
  }
  return fmt::to_string(number);
}

std::string readable_ggml_types() {
  std::vector<std::string_view> names;
  for (const GgmlType& type : kTypes) names.push_back(type.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void decode_blocks(const GgmlType& type, std::span<const std::byte> blocks, std::span<float> out) {
  const auto elements = static_cast<size_t>(type.block_elements);
  TRTMC_CHECK(
      out.size() % elements == 0 && blocks.size() == out.size() / elements * type.block_bytes,
      "whole blocks are decoded");
  for (size_t i = 0; i < out.size() / elements; ++i) {
    type.decode_block(&blocks[i * type.block_bytes], &out[i * elements]);
  }
}

}  // namespace trtmc
