// How tests load models.
#pragma once

#include "engine/loaded_model.h"

namespace trtmc {

// On one thread: several would wait for each other at every step while other tests run.
inline LoadOptions on_one_thread() {
  LoadOptions options;
  options.executor.num_threads = 1;
  return options;
}

}  // namespace trtmc
