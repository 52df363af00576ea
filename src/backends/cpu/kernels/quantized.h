// The products of quantised weights, defined in quantized.cc for each instruction set: functions of
// their own with strong symbols, for the table of that set.
#pragma once

#include "backends/cpu/kernels/kernel_table.h"

namespace trtmc::cpu::TRTMC_ISA {

void quantize_tokens(const float* x, int num_tokens, int64_t width, int64_t columns, void* out,
                     float* rest);
void matmul_q8(const MatmulArgs& args);
void matmul_q6(const MatmulArgs& args);
void matmul_q4(const MatmulArgs& args);

}  // namespace trtmc::cpu::TRTMC_ISA
