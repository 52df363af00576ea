// One block a row of work: a panel, a token. Both run rarely or move little.
#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/product.h"
#include "backends/cuda/kernels/weights.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPairsOfStep = kStepColumns / 2;

// Where a word lies: of a row and a pair of a step's columns. Lane 4 g + t has rows 2 g and 2 g + 1
// (those of a panel are rows g and g + 8 of the instruction) and the pairs t and t + 4.
__device__ __forceinline__ int64_t word_of(int row, int column_pair, int steps) {
  const int pair = column_pair % kPairsOfStep;
  const int64_t part = weight_part(row / kPanelRows, column_pair / kPairsOfStep, steps);
  const int lane = row % kPanelRows / 2 * 4 + pair % 4;
  return (part + lane) * 4 + row % 2 + pair / 4 * 2;
}

__global__ void pack_fragments_kernel(const __grid_constant__ PackFragmentsArgs args) {
  const int panel = static_cast<int>(blockIdx.x);
  const uint32_t* from = args.from + int64_t{panel} * args.pairs * kPanelRows;
  for (int i = static_cast<int>(threadIdx.x); i < args.pairs * kPanelRows; i += kThreads) {
    const int row = (panel * kPanelRows + i % kPanelRows) * args.row_distance + args.first_row;
    args.to[word_of(row, i / kPanelRows, args.steps)] = from[i];
  }
}

__device__ __forceinline__ float fragment_value(const EmbedArgs& args, int row, int column) {
  const auto* words = reinterpret_cast<const uint32_t*>(args.fragments);
  const uint32_t values = words[word_of(row, column / 2, args.steps)];
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
