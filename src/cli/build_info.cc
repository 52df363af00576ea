#include "cli/build_info.h"

#include <fmt/format.h>

// TRTMC_VERSION and TRTMC_BUILD_ID come from src/cli/CMakeLists.txt.

namespace trtmc {

std::string_view program_version() { return TRTMC_VERSION; }

std::string_view build_id() { return TRTMC_BUILD_ID; }

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace trtmc
