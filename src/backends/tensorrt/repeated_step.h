// Steps that repeat as one launch: the second of two with the same form is captured, and those
// after it are launched from what was captured, until one has another form.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "base/function_ref.h"

namespace trtmc::tensorrt {

class RepeatedStep {
 public:
  // All that what was captured depends on.
  struct Form {
    const void* context;
    const void* cache;
    const void* logits;
    int num_visible;
    bool operator==(const Form&) const = default;
  };

  RepeatedStep() = default;
  RepeatedStep(const RepeatedStep&) = delete;
  RepeatedStep& operator=(const RepeatedStep&) = delete;
  ~RepeatedStep() { forget(); }

  // Starts a step of this form on `stream`. `bind` says what goes where, and `enqueue` starts it;
  // it is false if that failed.
  bool run(const Form& form, cudaStream_t stream, FunctionRef<void()> bind,
           FunctionRef<bool()> enqueue);
  // What is started elsewhere comes between.
  void forget();

 private:
  bool capture(cudaStream_t stream, FunctionRef<bool()> enqueue);

  std::optional<Form> last_;
  cudaGraphExec_t graph_ = nullptr;
  bool captures_ = true;
};

}  // namespace trtmc::tensorrt
