#include "tests/support/embedded_bundle.h"

#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {

const std::filesystem::path& embedded_bundle() {
  static const TemporaryFolder folder;
  static const std::filesystem::path path = [] {
    const auto checkpoint = std::filesystem::path(TRTMC_SOURCE_DIR) / "models/smollm3-tiny";
    return build_checkpoint_bundle(checkpoint, folder.path() / "tiny.trtmc").path();
  }();
  return path;
}

}  // namespace trtmc
