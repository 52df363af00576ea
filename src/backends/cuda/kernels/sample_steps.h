// How a block samples its part of a row: what sample_token() of model/sampling.h computes, from the
// same arithmetic, in steps that all threads of the block do at once.
#pragma once

#include "backends/cuda/kernels/sample_finish.h"
#include "backends/cuda/kernels/sample_scores.h"
#include "backends/cuda/kernels/sample_select.h"

namespace trtmc::cuda {

template <typename Block>
TRTMC_STEP void run_sample_pass(Block& block, SampleShared& shared, const SamplePassArgs& args,
                                int row, int part) {
  const SampleJob& job = args.jobs[row];
  switch (args.pass) {
    case SamplePass::kScores:
      SampleScores<Block>(block, shared, args, row, part).run();
      break;
    case SamplePass::kSelectTopK:
      if (job.top_k > 0) SampleSelect<Block, false>(block, shared, args, row, part).run(args.digit);
      break;
    case SamplePass::kSelectTopP:
      if (job.top_p < 1) SampleSelect<Block, true>(block, shared, args, row, part).run(args.digit);
      break;
    case SamplePass::kFinish:
      SampleFinish<Block>(block, shared, args, row, part).run();
      break;
  }
}

}  // namespace trtmc::cuda
