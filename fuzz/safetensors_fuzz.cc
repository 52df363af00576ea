// A safetensors file: whatever the header claims, what is accepted covers the file's data exactly.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "checkpoint/safetensors.h"

volatile unsigned checksum = 0;  // So that the reads are not optimised away.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = std::as_bytes(std::span(data, size));
    size_t claimed = 0;
    unsigned sum = 0;
    for (const auto& [name, entry] : trtmc::parse_safetensors(file)) {
      claimed += entry.bytes.size();
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);  // Readable.
    }
    size_t header = 0;
    for (size_t i = 8; i-- > 0;) header = header << 8 | data[i];
    if (claimed != size - 8 - header) std::abort();
    checksum = sum;
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
  return 0;
}
