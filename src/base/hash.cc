#include "base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include "base/check.h"

namespace trtmc {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  TRTMC_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  TRTMC_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "SHA-256 update");
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  unsigned size = 0;
  TRTMC_CHECK(EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()),
                                 &size) == 1 &&
                  size == digest.size(),
              "SHA-256 end");
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
  std::string text;
  for (const std::byte b : digest) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace trtmc
