// A bundle file: opening and verifying it must end in a Bundle or an Error. Most damage stops at
// the hash of the header, so the input is tried a second time with that hash made right.
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "bundle/bundle_header.h"

namespace {

// Where docs/bundle_format.md has them.
constexpr size_t kNumSections = 12, kManifestBytes = 16, kFileBytes = 24, kHash = 32, kHead = 64;

void open(std::span<const std::byte> file) {
  try {
    const trtmc::BundleHeader header = trtmc::decode_header(file);
    for (size_t i = 0; i < header.sections.size(); ++i) {
      const trtmc::Section& section = header.sections[i];
      TRTMC_CHECK(section.offset <= file.size() && section.bytes <= file.size() - section.offset,
                  "a section outside the file");
      try {
        trtmc::verify_section(file, header.sections, i);
      } catch (const trtmc::Error&) {
        // Damaged, and said so.
      }
    }
    TRTMC_CHECK(trtmc::manifest_from_json(trtmc::to_json(header.manifest)) == header.manifest,
                "a manifest that does not survive being written");
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
}

// Sizes and the hash of the header made right, as far as the counts allow.
std::string sealed(std::string file) {
  uint32_t num_sections = 0;
  uint64_t manifest_bytes = 0;
  std::memcpy(&num_sections, file.data() + kNumSections, sizeof num_sections);
  std::memcpy(&manifest_bytes, file.data() + kManifestBytes, sizeof manifest_bytes);
  if (manifest_bytes > file.size() || num_sections > file.size()) return file;
  const uint64_t size = file.size();
  std::memcpy(file.data() + kFileBytes, &size, sizeof size);
  const uint64_t header =
      (kHead + (manifest_bytes + 7) / 8 * 8 + uint64_t{num_sections} * 144 + 4095) / 4096 * 4096;
  if (header > file.size()) return file;
  trtmc::Sha256 hash;
  hash.update(trtmc::as_bytes(file).first(kHash));
  hash.update(trtmc::as_bytes(file).subspan(kHead, header - kHead));
  const trtmc::Sha256Digest digest = hash.finish();
  std::memcpy(file.data() + kHash, digest.data(), digest.size());
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  open(trtmc::as_bytes(file));
  if (size >= kHead) {
    const std::string again = sealed(file);
    open(trtmc::as_bytes(again));
  }
  return 0;
}
