// One block a row of work: a panel, a token. Both run rarely or move little.
#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/weights.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kPairsOfStep = kStepColumns / 2;

// Word i of lane 4 g + t holds row 2 g + i % 2 (product.h's rows 2 g, 2 g + 1 are rows g and g + 8
// of the instruction) and the pair t + i / 2 * 4 of the step's columns.
__device__ __forceinline__ int row_of(int lane, int word) { return lane / 4 * 2 + word % 2; }
__device__ __forceinline__ int pair_of(int lane, int word) { return lane % 4 + word / 2 * 4; }

__global__ void pack_fragments_kernel(const __grid_constant__ PackFragmentsArgs args) {
  const int panel = static_cast<int>(blockIdx.x);
  const uint32_t* from = args.from + int64_t{panel} * args.pairs * kPanelRows;
  const int64_t to_panel = args.to_panel_first + int64_t{panel} * args.to_panel_distance;
  uint4* to = args.to + to_panel * args.steps * kLanes;
  for (int i = static_cast<int>(threadIdx.x); i < args.steps * kLanes; i += kThreads) {
    uint32_t words[4];
    for (int word = 0; word < 4; ++word) {
      const int pair = i / kLanes * kPairsOfStep + pair_of(i % kLanes, word);
      words[word] = pair < args.pairs ? from[pair * kPanelRows + row_of(i % kLanes, word)] : 0;
    }
    to[i] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

__device__ __forceinline__ float fragment_value(const EmbedArgs& args, int row, int column) {
  const int pair = column % kStepColumns / 2;
  const int lane = row % kPanelRows / 2 * 4 + pair % 4;
  const int word = row % 2 + pair / 4 * 2;
  const auto* words = reinterpret_cast<const uint32_t*>(args.fragments);
  const int64_t step = int64_t{row / kPanelRows} * args.steps + column / kStepColumns;
  const uint32_t values = words[(step * kLanes + lane) * 4 + word];
  return column % 2 == 0 ? bf16_low(values) : bf16_high(values);
}

__global__ void embed_kernel(const __grid_constant__ EmbedArgs args) {
  release_successors();
  wait_for_predecessors();
  const int token = static_cast<int>(blockIdx.x);
  const int row = args.tokens[token];
  for (int i = static_cast<int>(threadIdx.x); i < args.width; i += kThreads) {
    const int64_t place = (int64_t{row / kPanelRows} * args.width + i) * kPanelRows;
    args.out[token * args.out_stride + i] = args.fragments != nullptr
                                                ? fragment_value(args, row, i)
                                                : args.panels[place + row % kPanelRows];
  }
}

}  // namespace

void launch_pack_fragments(const PackFragmentsArgs& args, const Launch& how) {
  launch(pack_fragments_kernel, dim3(static_cast<unsigned>(args.num_panels)), dim3(kThreads), 0,
         how, args);
}

void launch_embed(const EmbedArgs& args, const Launch& how) {
  launch(embed_kernel, dim3(static_cast<unsigned>(args.num_tokens)), dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
