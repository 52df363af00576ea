// Which kernels this machine can run, and which of them to.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace trtmc::cpu {

// Best first; "generic" last and always there.
std::vector<const KernelTable*> available_kernels();

// By name; the best for an empty name. Throws kUnsupported for an
// instruction set that this machine lacks, kInvalidArgument for one that trtmc does not know, both
// naming those available.
const KernelTable& choose_kernels(std::string_view name);

// The product of weights of this type. Of a quantised one it takes activations as bytes.
MatmulKernel matmul_of(const KernelTable& kernels, DType dtype);

}  // namespace trtmc::cpu
