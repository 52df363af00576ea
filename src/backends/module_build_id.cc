#include "backends/backend_module.h"

// TRTMC_VERSION and TRTMC_BUILD_ID come from cmake/TrtmcBuildId.cmake.

namespace trtmc {

const char* module_build_id() {
#ifdef _GLIBCXX_ASSERTIONS
  return TRTMC_VERSION " " TRTMC_BUILD_ID " " __VERSION__ " with assertions";
#else
  return TRTMC_VERSION " " TRTMC_BUILD_ID " " __VERSION__;
#endif
}

}  // namespace trtmc
