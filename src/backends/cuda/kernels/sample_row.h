// Sampling on the device, pass by pass.
#pragma once

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/sample_job.h"

namespace trtmc::cuda {

void launch_sample_pass(const SamplePassArgs& args, const Launch& how);

}  // namespace trtmc::cuda
