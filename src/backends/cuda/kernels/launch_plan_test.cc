#include "backends/cuda/kernels/launch_plan.h"

#include <gtest/gtest.h>

#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {
namespace {

// Of an NVIDIA H200, and of a GeForce RTX 4090 (compute capability 8.9).
constexpr DeviceLimits kH200{132, 232448, 233472};
constexpr DeviceLimits kRtx4090{128, 101376, 102400};

TEST(Steps, AreWhole) {
  EXPECT_EQ(num_steps(2048), 128);
  EXPECT_EQ(num_steps(72), 5);
  EXPECT_EQ(num_segments(128), 8);
  EXPECT_EQ(num_segments(11008 / 16), 43);
}

TEST(GemvPlan, GivesEveryWarpASegmentOfTheHiddenWidth) {
  // q, k and v of SmolLM3-3B: 3072 rows of 2048.
  const GemvPlan plan = plan_gemv(kH200, 192, 1, 128, 3, 1, true).value();
  EXPECT_EQ(plan.warps, 8);
  EXPECT_EQ(plan.num_tiles, 192);
  EXPECT_EQ(plan.blocks, 192);
}

TEST(GemvPlan, LetsBlocksTakeTilesInTurnWhereThereAreMany) {
  const GemvPlan plan =
      plan_gemv(kH200, 1376, 2, 128, 3, 1, true).value();  // Gate and up: 688 tiles.
  EXPECT_EQ(plan.num_tiles, 688);
  EXPECT_EQ(plan.blocks, 230);  // Three tiles each, of 264 that run at once.
}

TEST(GemvPlan, GivesWarpsOfALoneBlockEqualShares) {
  const GemvPlan plan = plan_gemv(kH200, 128, 1, 688, 3, 1, false).value();  // Down: 43 segments.
  EXPECT_EQ(plan.blocks, 128);
  EXPECT_EQ(plan.warps, 15);
}

// Every shape of the model, every number of tokens and terms, on a large and on a small device.
TEST(GemvPlan, FitsIntoSharedMemory) {
  struct Shape {
    int panels, panels_per_tile, steps;
  };
  for (const DeviceLimits& device : {kH200, kRtx4090}) {
    for (const Shape shape : {Shape{192, 1, 128}, {1376, 2, 128}, {128, 1, 688}, {8016, 1, 128}}) {
      for (const int terms : {1, 3}) {
        for (int tokens = 1; tokens <= kMostGemvTokens; ++tokens) {
          const auto plan = plan_gemv(device, shape.panels, shape.panels_per_tile, shape.steps,
                                      terms, tokens, tokens <= 4 && shape.steps == 128);
          // Only the smaller device, the longest sums and the most tokens have no room.
          ASSERT_TRUE(plan || (device.multiprocessors == 128 && shape.steps == 688 && tokens > 12))
              << tokens << " tokens";
          if (!plan) continue;
          EXPECT_LE(plan->shared_bytes, static_cast<size_t>(device.shared_bytes_per_block));
          EXPECT_GE(plan->warps, 1);
          EXPECT_LE(plan->blocks, plan->num_tiles);
        }
      }
    }
  }
}

TEST(GemmPlan, CoversTheRest) {
  const GemmPlan plan = plan_gemm(192, 1, 300);
  EXPECT_EQ(plan.row_tiles, 24);
  EXPECT_EQ(plan.token_tiles, 3);
  // Stages of 128 rows and 128 tokens by 32 columns of two bytes.
  EXPECT_EQ(plan.shared_bytes, 5U * (128 + 128) * 32 * 2);
  EXPECT_EQ(plan_gemm(1, 3, 1).shared_bytes, 4U * (128 + 3 * 64) * 32 * 2);
}

TEST(Chunks, HaveRoomToGrowByPowersOfTwo) {
  EXPECT_EQ(chunk_bucket(0), 1);
  EXPECT_EQ(chunk_bucket(kChunkPositions - 1), 1);
  EXPECT_EQ(chunk_bucket(kChunkPositions), 2);
  EXPECT_EQ(chunk_bucket(4 * kChunkPositions - 1), 4);
  EXPECT_EQ(chunk_bucket(4 * kChunkPositions), 8);
}

}  // namespace
}  // namespace trtmc::cuda
