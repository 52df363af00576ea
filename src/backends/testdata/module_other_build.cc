// A backend of another build: its `backend` must not be touched.
#include "backends/backend_module.h"

extern "C" __attribute__((visibility("default"))) const trtmc::BackendModule* trtmc_backend_v1(
    const trtmc::ModuleHost* /*host*/) noexcept {
  static const trtmc::BackendModule kModule{"9.9.9 of elsewhere", nullptr};
  return &kModule;
}
