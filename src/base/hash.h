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

using Sha1Digest = std::array<std::byte, 20>;

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

// SHA-1, for names that git gives: it finds damage, but is no defence against forgery.
class Sha1 {
 public:
  Sha1();
  ~Sha1();
  void update(std::span<const std::byte> bytes);
  Sha1Digest finish();  // Ends this hash; the object can't be used again.

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// "e5eed411…": lower-case digits, two a byte.
std::string to_hex(std::span<const std::byte> digest);

// XXH3. `seed` chains: hash64(b, hash64(a)) depends on both.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

// Of a text, for tables in memory: another in each process, so that nobody outside can choose texts
// that meet in one place.
struct TextHash {
  size_t operator()(std::string_view text) const;
};

}  // namespace trtmc
