// y = W x for many tokens by wgmma. A block makes a tile of rows by tokens: one warp fetches stages
// of four steps along k to shared memory (bulk copies that barriers count), each warp group
// multiplies 64 rows. Weights lie as a warp wants them in its registers, terms as wgmma wants them
// in shared memory, so both are copied as they are.
//
// A tile's sum along k is either made by one block, which adds up its segments in turn, or by a
// cluster of blocks, each of which makes one segment; then they read each other's from shared
// memory and add them in the same order. So few tokens keep all multiprocessors busy.
#include "backends/cuda/kernels/gemm_wgmma.h"
#include "backends/cuda/kernels/gemm_wgmma_kernel.cuh"

namespace trtmc::cuda {
namespace {

template <int kTerms, int kGroups, int kTokens, int kStages, Way kWay>
constexpr WgmmaChoice choice() {
  return wgmma_choice<Shape<kTerms, kGroups, kTokens, kStages, kWay>>();
}
constexpr WgmmaChoice kChoices[] = {
    choice<1, 1, 32, 6, Way::kAlone>(),  choice<1, 1, 32, 6, Way::kSplit>(),
    choice<1, 1, 64, 4, Way::kAlone>(),  choice<1, 1, 64, 4, Way::kSplit>(),
    choice<1, 2, 64, 4, Way::kSplit>(),  choice<1, 1, 128, 8, Way::kAlone>(),
    choice<1, 2, 128, 5, Way::kAlone>(), choice<1, 2, 128, 6, Way::kSplit>(),
    choice<3, 1, 32, 3, Way::kAlone>(),  choice<3, 1, 32, 3, Way::kSplit>(),
    choice<3, 2, 64, 4, Way::kAlone>(),  choice<3, 2, 64, 5, Way::kSplit>(),
};

}  // namespace

void launch_gemm_wgmma(const ProductArgs& args, const WgmmaPlan& plan, const Launch& how) {
  launch_choice(kChoices, args, plan, how);
}

void prepare_gemm_wgmma() { prepare_choices(kChoices); }

}  // namespace trtmc::cuda
