// How a warp group of gemm_wgmma_quantized.cu makes the sums of a segment, as quantized.cuh says.
#pragma once

#include "backends/cuda/kernels/gemm_wgmma.cuh"
#include "backends/cuda/kernels/quantized.cuh"

namespace trtmc::cuda {

#ifdef TRTMC_HAS_WGMMA

template <typename Of>
struct ScaledSegment {
  static_assert(kUnitSteps == kBlockSteps);
  static constexpr int kCount = Of::kTokens / 2;
  Consumer<Of>& consumer;
  Decoder<Of::kFormat> decoder;
  float of[Of::kTerms][kCount];
  uint4 left[2][kBlockSteps];  // Of the block that is multiplied and of the next.
  float2 scales[2];

  __device__ __forceinline__ explicit ScaledSegment(Consumer<Of>& of_group)
      : consumer(of_group), decoder(of_group.lane) {
#pragma unroll
    for (int term = 0; term < Of::kTerms; ++term) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) of[term][i] = 0;
    }
  }

  __device__ __forceinline__ void decode(int block) {
    const auto* piece = reinterpret_cast<const std::byte*>(
        consumer.stages[consumer.place.stage].weights[consumer.group][consumer.warp]);
    scales[block % 2] = decode_block<Of::kFormat>(decoder, piece + block * block_bytes(Of::kFormat),
                                                  consumer.lane, left[block % 2]);
  }

  // Of one term; `meanwhile` runs beside the tensor core.
  template <typename Meanwhile>
  __device__ __forceinline__ void multiply(int block, int term, Meanwhile meanwhile) {
    float sums[kCount];
    begin_products();
#pragma unroll
    for (int i = 0; i < kBlockSteps; ++i) {
      Wgmma<Of::kTokens>::multiply_add(sums, left[block % 2][i],
                                       consumer.terms_at(block * kBlockSteps + i, term), i > 0);
    }
    commit_products();
    meanwhile();
    wait_for_products<0>();
    receive(sums);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      float* to = of[term] + i;
      const float four[4] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      add_scaled(to, four, scales[block % 2]);
    }
  }

  // A stage; its first block is decoded already, and in the end that of the next one.
  __device__ __forceinline__ void multiply_stage(bool is_last) {
    const int stage = consumer.place.stage;
#pragma unroll
    for (int block = 0; block < kPieceBlocks; ++block) {
#pragma unroll
      for (int term = 0; term < Of::kTerms; ++term) {
        multiply(block, term, [&] {
          if (term > 0) return;
          if (block + 1 < kPieceBlocks) decode(block + 1);
        });
      }
    }
    consumer.release(stage);
    consumer.place.advance();
    if (is_last) return;
    consumer.wait_for_stage();
    decode(0);
  }
};

template <typename Of>
__device__ __forceinline__ void multiply_scaled_segment(Consumer<Of>& consumer,
                                                        float (&sums)[Of::kTokens / 2], int steps) {
  ScaledSegment<Of> segment(consumer);
  consumer.wait_for_stage();
  segment.decode(0);
  for (int step = 0; step < steps; step += kPieceSteps) {
    segment.multiply_stage(step + kPieceSteps >= steps);
  }
#pragma unroll
  for (int i = 0; i < Of::kTokens / 2; ++i) {
    if constexpr (Of::kTerms == 1) {
      sums[i] = segment.of[0][i];
    } else {
      sums[i] = added_terms(segment.of[0][i], segment.of[1][i], segment.of[2][i]);
    }
  }
}

#endif

}  // namespace trtmc::cuda
