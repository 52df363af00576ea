// A bundle of the embedded model, built once a process.
#pragma once

#include <filesystem>

namespace trtmc {

// Valid until the process ends.
const std::filesystem::path& embedded_bundle();

}  // namespace trtmc
