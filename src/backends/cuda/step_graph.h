// Captured launches of a step, by what they depend on: how many tokens, and room for how long a
// context. Captured when first needed.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <utility>

#include "base/function_ref.h"

namespace trtmc::cuda {

class StepGraphs {
 public:
  struct Key {
    int num_tokens;
    int num_chunks;
    auto operator<=>(const Key&) const = default;
  };

  StepGraphs() = default;
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;
  ~StepGraphs() { clear(); }

  // Launches the graph of `key`, made from what `record` launches on `stream` if there is none yet.
  void run(const Key& key, cudaStream_t stream, FunctionRef<void()> record);
  // What they point to has moved.
  void clear();

 private:
  std::map<Key, cudaGraphExec_t> graphs_;
};

}  // namespace trtmc::cuda
