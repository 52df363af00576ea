// What a hub answers: whatever it lists, what is downloaded has plain names, digests that are file
// names, and sizes that can be added up.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "hub/repository_listing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto listing = trtmc::parse_listing({reinterpret_cast<const char*>(data), size});
    if (listing.commit.size() != 40) std::abort();
    uint64_t total = 0;
    for (const trtmc::RepositoryFile& file : trtmc::files_for_build(listing)) {
      if (file.name.find('/') != std::string::npos || file.name.front() == '.') std::abort();
      const size_t digits = file.digest.kind == trtmc::FileDigest::Kind::kSha256 ? 64 : 40;
      if (file.digest.hex.size() != digits) std::abort();
      if (file.digest.hex.find_first_not_of("0123456789abcdef") != std::string::npos) std::abort();
      if (total + file.bytes < total) std::abort();
      total += file.bytes;
    }
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
  return 0;
}
