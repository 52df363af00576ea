#include "backends/cuda/kernels/launch_plan.h"

#include <gtest/gtest.h>

#include <utility>

#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {
namespace {

// Of an NVIDIA H200, and of a GeForce RTX 4090 (compute capability 8.9).
constexpr DeviceLimits kH200{132, 232448, 233472};
constexpr DeviceLimits kRtx4090{128, 101376, 102400};

TEST(Steps, AreWhole) {
  EXPECT_EQ(num_steps(2048), 128);
  EXPECT_EQ(num_steps(72), 8);
  EXPECT_EQ(num_steps(129), 16);
}

TEST(Segments, AreEightAtMostAndWholePieces) {
  EXPECT_EQ(segment_steps(128), 16);
  EXPECT_EQ(num_segments(128), 8);
  EXPECT_EQ(segment_steps(688), 88);  // 11 008 columns: seven of 88 steps and one of 72.
  EXPECT_EQ(num_segments(688), 8);
  EXPECT_EQ(num_segments(8), 1);
  EXPECT_EQ(num_segments(24), 2);
  EXPECT_EQ(segment_steps(136), 24);
  EXPECT_EQ(num_segments(136), 6);
}

TEST(TermBlock, IsAPowerOfTwoThatHoldsTheTokensIfOneCan) {
  EXPECT_EQ(term_block(1, 1), 16);
  EXPECT_EQ(term_block(1, 17), 32);
  EXPECT_EQ(term_block(1, 64), 64);
  EXPECT_EQ(term_block(1, 65), 128);
  EXPECT_EQ(term_block(1, 4096), 128);
  EXPECT_EQ(term_block(3, 4096), 64);
}

TEST(GemvPlan, GivesEveryWarpASegmentOfTheHiddenWidth) {
  // q, k and v of SmolLM3-3B: 3072 rows of 2048.
  const GemvPlan plan = plan_gemv(kH200, 192, 128, 3, 1, 2048).value();
  EXPECT_EQ(plan.warps, 8);
  EXPECT_EQ(plan.blocks, 192);
  EXPECT_EQ(plan.staged_pairs, 1);  // Which is all that a warp ever needs.
}

TEST(GemvPlan, LetsBlocksTakePanelsInTurnWhereThereAreMany) {
  const GemvPlan plan = plan_gemv(kH200, 1376, 128, 3, 1, 2048).value();  // Gate and up.
  EXPECT_EQ(plan.blocks, 230);  // Six panels each, of 264 that run at once.
}

TEST(GemvPlan, StagesAheadWhereSegmentsAreLong) {
  const GemvPlan plan = plan_gemv(kH200, 128, 688, 3, 1, 0).value();  // Down.
  EXPECT_EQ(plan.blocks, 128);
  EXPECT_EQ(plan.warps, 8);
  EXPECT_EQ(plan.staged_pairs, 2);
  EXPECT_EQ(plan_gemv(kH200, 128, 688, 3, 16, 0).value().staged_pairs, 1);
}

TEST(GemvPlan, LeavesNormsOfLongSegmentsToOthers) {
  EXPECT_FALSE(plan_gemv(kH200, 192, 256, 1, 1, 4096));
  EXPECT_TRUE(plan_gemv(kH200, 192, 256, 1, 1, 0));
}

// Every shape of the model, every number of tokens and terms, on a large and on a small device.
TEST(GemvPlan, FitsIntoSharedMemory) {
  struct Shape {
    int panels, steps;
  };
  for (const DeviceLimits& device : {kH200, kRtx4090}) {
    for (const Shape shape : {Shape{192, 128}, {1376, 128}, {128, 688}, {8016, 128}}) {
      for (const int terms : {1, 3}) {
        for (int tokens = 1; tokens <= kMostGemvTokens; ++tokens) {
          const int norm = tokens <= 4 && shape.steps == 128 ? 2048 : 0;
          const auto plan = plan_gemv(device, shape.panels, shape.steps, terms, tokens, norm);
          ASSERT_TRUE(plan) << tokens << " tokens";
          EXPECT_LE(plan->shared_bytes, static_cast<size_t>(device.shared_bytes_per_block));
          EXPECT_GE(plan->warps, 1);
          EXPECT_LE(plan->blocks, shape.panels);
        }
      }
    }
  }
}

// ---- Quantised weights: a segment of q8 is 4352 bytes, of q4 2304.

TEST(QuantizedGemvPlan, KeepsTheTermsOfShortSegments) {
  const QuantizedGemvPlan plan = plan_gemv_quantized(kH200, 4352, 0, 192, 128, 3, 1, 2048).value();
  EXPECT_EQ(plan.warps, 8);
  EXPECT_TRUE(plan.keeps_terms);
  EXPECT_EQ(plan.blocks, 192);
  // Down: 11 008 columns.
  EXPECT_FALSE(plan_gemv_quantized(kH200, 4352, 0, 128, 688, 3, 1, 0).value().keeps_terms);
}

TEST(QuantizedGemvPlan, GivesLongSumsMoreWarps) {
  const QuantizedGemvPlan plan = plan_gemv_quantized(kH200, 4352, 0, 128, 688, 3, 1, 0).value();
  EXPECT_EQ(plan.segments, 43);
  EXPECT_EQ(plan.warps, 16);
}

TEST(QuantizedGemvPlan, LetsTwoBlocksOfAMultiprocessorTakePanelsInTurn) {
  for (const auto& [bytes, table] : {std::pair{4352, 0}, {2304, kQ4TableBytes}}) {
    const QuantizedGemvPlan plan =
        plan_gemv_quantized(kH200, bytes, table, 1376, 128, 3, 1, 2048).value();
    EXPECT_EQ(plan.blocks, 230);  // Six panels each, of 264 that run at once.
    EXPECT_LE(2 * (plan.shared_bytes + static_cast<size_t>(table + kGemvBarrierBytes)),
              static_cast<size_t>(kH200.shared_bytes_per_multiprocessor));
  }
}

TEST(QuantizedGemvPlan, LeavesNormsOfLongSegmentsToOthers) {
  EXPECT_FALSE(plan_gemv_quantized(kH200, 4352, 0, 192, 256, 1, 1, 4096));
  EXPECT_TRUE(plan_gemv_quantized(kH200, 4352, 0, 192, 256, 1, 1, 0));
}

// On a small device there may be none: then gemm makes the product.
TEST(QuantizedGemvPlan, FitsIntoSharedMemory) {
  struct Shape {
    int panels, steps;
  };
  for (const DeviceLimits& device : {kH200, kRtx4090}) {
    for (const Shape shape : {Shape{192, 128}, {1376, 128}, {128, 688}, {8016, 128}}) {
      for (const auto& [bytes, table] : {std::pair{4352, 0}, {2304, kQ4TableBytes}}) {
        for (const int terms : {1, 3}) {
          for (int tokens = 1; tokens <= most_quantized_gemv_tokens(terms); ++tokens) {
            const int norm = tokens <= 2 && shape.steps == 128 ? 2048 : 0;
            const auto plan = plan_gemv_quantized(device, bytes, table, shape.panels, shape.steps,
                                                  terms, tokens, norm);
            if (device.multiprocessors == kH200.multiprocessors) {
              ASSERT_TRUE(plan) << tokens << " tokens";
            }
            if (!plan) continue;
            EXPECT_LE(plan->shared_bytes + static_cast<size_t>(table + kGemvBarrierBytes),
                      static_cast<size_t>(device.shared_bytes_per_block));
            EXPECT_GE(plan->slots, 2);
            EXPECT_LE(plan->blocks, shape.panels);
          }
        }
      }
      EXPECT_TRUE(
          plan_gemv_quantized(device, 4352, 0, shape.panels, shape.steps, 3, 1, 0).has_value());
    }
  }
}

TEST(QuantizedWgmmaPlan, TakesATileOfTheTermsBlock) {
  for (const int terms : {1, 3}) {
    for (const int tokens : {17, 33, 65, 128, 4096}) {
      const WgmmaPlan plan = plan_wgmma_quantized(kH200, 192, terms, tokens);
      EXPECT_EQ(plan.tokens, term_block(terms, tokens));
      EXPECT_GE(plan.token_tiles * plan.tokens, tokens);
      EXPECT_EQ(plan.row_tiles * plan.groups * 4, 192);
      EXPECT_FALSE(plan.splits);
    }
  }
}

// Shapes of SmolLM3-3B: q, k and v; o; gate and up; down; the head.
TEST(WgmmaPlan, TakesATileOfTheTermsBlock) {
  for (const int panels : {192, 128, 1376, 8016}) {
    for (const int terms : {1, 3}) {
      for (const int tokens : {17, 32, 33, 64, 65, 128, 129, 256, 4096}) {
        const WgmmaPlan plan = plan_wgmma(kH200, panels, 128, terms, tokens);
        EXPECT_EQ(plan.tokens, term_block(terms, tokens));
        EXPECT_GE(plan.token_tiles * plan.tokens, tokens);
        EXPECT_GE(plan.row_tiles * plan.groups * 4, panels);
        EXPECT_LE(plan.clusters, plan.row_tiles * plan.token_tiles);
        if (plan.splits) {
          EXPECT_EQ(plan.clusters, plan.row_tiles * plan.token_tiles);
        }
      }
    }
  }
}

TEST(WgmmaPlan, SharesTheSumsOfFewTiles) {
  EXPECT_TRUE(plan_wgmma(kH200, 128, 128, 1, 64).splits);    // o: 32 tiles.
  EXPECT_TRUE(plan_wgmma(kH200, 128, 688, 1, 256).splits);   // Down: 32 tiles, long sums.
  EXPECT_FALSE(plan_wgmma(kH200, 192, 128, 1, 256).splits);  // q, k and v: 48 tiles.
  EXPECT_FALSE(plan_wgmma(kH200, 1376, 128, 1, 64).splits);  // Gate and up: 344 tiles.
}

TEST(WgmmaPlan, GivesManyTokensOneBlockAMultiprocessor) {
  const WgmmaPlan plan = plan_wgmma(kH200, 128, 688, 1, 4096);
  EXPECT_EQ(plan.groups, 2);
  EXPECT_EQ(plan.clusters, 132);
  EXPECT_FALSE(plan.splits);
}

TEST(GemmPlan, CoversTheRest) {
  const GemmPlan plan = plan_gemm(192, 512, 1, 300);
  EXPECT_EQ(plan.row_tiles, 24);
  EXPECT_EQ(plan.token_tiles, 3);
  // Stages of 128 rows and 128 tokens by 32 columns of two bytes.
  EXPECT_EQ(plan.shared_bytes, 5U * (128 + 128) * 32 * 2);
  EXPECT_EQ(plan_gemm(1, 512, 3, 1).shared_bytes, 4U * (128 + 3 * 64) * 32 * 2);
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
