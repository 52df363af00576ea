// Hashes: SHA-256 where bytes must be trusted, a 64-bit hash where they only have to differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace trtmc {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  Sha256Digest finish();  // Ends this hash; the object can't be used again.

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

// "e5eed411…": 64 lower-case digits.
std::string to_hex(const Sha256Digest& digest);

// XXH3. `seed` chains: hash64(b, hash64(a)) depends on both.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace trtmc
