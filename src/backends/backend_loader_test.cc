#include "backends/backend_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/step_limits.h"
#include "base/error.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

Manifest manifest_of(std::string quantization) {
  Manifest manifest;
  manifest.quantization = std::move(quantization);
  return manifest;
}

Error error_of(std::string_view name, const Manifest& manifest) {
  try {
    find_backend(name, manifest);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "no error"};
}

TEST(Backends, EndWithTheReference) {
  EXPECT_EQ(all_backends().front()->name(), "cpu");
  EXPECT_EQ(all_backends().back()->name(), "reference");
}

TEST(Backends, AreFoundByName) {
  EXPECT_EQ(find_backend("reference", manifest_of("none")).name(), "reference");
  EXPECT_EQ(find_backend("cpu", manifest_of("none")).name(), "cpu");
}

TEST(Backends, AreTheCpuByDefault) {
  EXPECT_EQ(find_backend("auto", manifest_of("none")).name(), "cpu");
}

TEST(Backends, RefuseAnUnknownNameWithThoseThereAre) {
  const Error error = error_of("cuda9", manifest_of("none"));
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("\"cuda9\", only auto, cpu, cuda, tensorrt, reference"));
}

TEST(Backends, SayWhyNoneCanRunAModel) {
  const Error error = error_of("auto", manifest_of("q3"));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("cpu: weights quantized as \"q3\""));
  EXPECT_THAT(error.what(), HasSubstr("reference: weights quantized as \"q3\""));
}

// ---- Limits

DecoderSpec smollm3_3b() {
  return {.vocab_size = 128256,
          .hidden_size = 2048,
          .intermediate_size = 11008,
          .num_heads = 16,
          .num_kv_heads = 4,
          .head_dim = 128,
          .context_length = 65536,
          .rms_norm_eps = 1e-6F,
          .tied_embeddings = true,
          .rope = {.theta = 5e6, .rotary_dim = 128, .scaling = {}},
          .layers = std::vector<LayerSpec>(36, {.rope = true, .sliding_window = 0})};
}

TEST(KvBlock, OfSmolLm3InBf16Has73728BytesAToken) {
  EXPECT_EQ(kv_block_bytes(smollm3_3b(), KvType::kBF16, 1), 73728U);
  EXPECT_EQ(kv_block_bytes(smollm3_3b(), KvType::kF32, 32), 73728U * 2 * 32);
  // 36 layers, a key and a value of 4 heads, each of 128 bytes and a scale of 4.
  EXPECT_EQ(kv_block_bytes(smollm3_3b(), KvType::kQ8, 32), 36U * 2 * 4 * 132 * 32);
  EXPECT_EQ(kv_block_bytes(smollm3_3b(), KvType::kFp8, 32), 36U * 2 * 4 * 132 * 32);
}

constexpr int kBlockSize = 32;
constexpr uint64_t kBlockBytes = uint64_t{73728} * kBlockSize;

TEST(Limits, HoldOneWholeSequenceByDefault) {
  EXPECT_EQ(make_limits(smollm3_3b(), {}, kBlockSize, kBlockBytes).num_blocks, 2048);
  ExecutorOptions options;
  options.context_length = 33;
  EXPECT_EQ(make_limits(smollm3_3b(), options, kBlockSize, kBlockBytes).num_blocks, 2);
}

TEST(Limits, HoldWhatTheBudgetHolds) {
  ExecutorOptions options;
  options.kv_memory_bytes = 3 * kBlockBytes + 1;
  EXPECT_EQ(make_limits(smollm3_3b(), options, kBlockSize, kBlockBytes).num_blocks, 3);
}

ErrorCode code_of(const ExecutorOptions& options, uint64_t block_bytes) {
  try {
    make_limits(smollm3_3b(), options, kBlockSize, block_bytes);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Limits, RefuseABudgetWithoutABlock) {
  ExecutorOptions options;
  options.kv_memory_bytes = kBlockBytes - 1;
  EXPECT_EQ(code_of(options, kBlockBytes), ErrorCode::kInvalidArgument);
}

TEST(Limits, RefuseAContextBeyondTheModels) {
  ExecutorOptions options;
  options.context_length = 65537;
  EXPECT_EQ(code_of(options, kBlockBytes), ErrorCode::kInvalidArgument);
}

TEST(Limits, RefuseBlocksBeyondAllMemory) {
  EXPECT_EQ(code_of({}, uint64_t{1} << 40), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace trtmc
