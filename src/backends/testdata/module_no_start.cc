// A backend that can't start.
#include "backends/backend_module.h"

extern "C" __attribute__((visibility("default"))) const trtmc::BackendModule* trtmc_backend_v1(
    const trtmc::ModuleHost* /*host*/) noexcept {
  return nullptr;
}
