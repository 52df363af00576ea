// gemm_wgmma of quantised weights. Stages are pieces, eight steps; a warp turns the codes of a
// block into its left sides in registers while the tensor core works on the last one, and scales
// sums while another warp group's are made.
#include "backends/cuda/kernels/gemm_wgmma.h"
#include "backends/cuda/kernels/gemm_wgmma_kernel.cuh"

namespace trtmc::cuda {
namespace {

template <WeightFormat kFormat, int kTerms, int kGroups, int kTokens, int kStages>
constexpr WgmmaChoice choice() {
  return wgmma_choice<Shape<kTerms, kGroups, kTokens, kStages, Way::kAlone, kFormat>>();
}
constexpr WeightFormat kQ8 = WeightFormat::kQ8, kQ4 = WeightFormat::kQ4;
constexpr WgmmaChoice kChoices[] = {
    choice<kQ8, 1, 1, 32, 3>(), choice<kQ8, 1, 1, 64, 2>(),  choice<kQ8, 1, 2, 128, 3>(),
    choice<kQ8, 3, 1, 32, 2>(), choice<kQ8, 3, 2, 64, 2>(),  choice<kQ4, 1, 1, 32, 3>(),
    choice<kQ4, 1, 1, 64, 2>(), choice<kQ4, 1, 2, 128, 3>(), choice<kQ4, 3, 1, 32, 2>(),
    choice<kQ4, 3, 2, 64, 2>(),
};

}  // namespace

void launch_gemm_wgmma_quantized(const ProductArgs& args, const WgmmaPlan& plan,
                                 const Launch& how) {
  launch_choice(kChoices, args, plan, how);
}

void prepare_gemm_wgmma_quantized() { prepare_choices(kChoices); }

}  // namespace trtmc::cuda
