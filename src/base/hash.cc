#include "base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include <random>

#include "base/check.h"

namespace trtmc {

namespace {

class Digester {
 public:
  explicit Digester(const EVP_MD* kind) : evp_(EVP_MD_CTX_new()) {
    TRTMC_CHECK(EVP_DigestInit_ex(evp_, kind, nullptr) == 1, "OpenSSL has the hash");
  }
  ~Digester() { EVP_MD_CTX_free(evp_); }
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void update(std::span<const std::byte> bytes) {
    TRTMC_CHECK(EVP_DigestUpdate(evp_, bytes.data(), bytes.size()) == 1, "a hash goes on");
  }
  void finish(std::span<std::byte> digest) {
    unsigned size = 0;
    TRTMC_CHECK(
        EVP_DigestFinal_ex(evp_, reinterpret_cast<unsigned char*>(digest.data()), &size) == 1 &&
            size == digest.size(),
        "a hash ends");
  }

 private:
  EVP_MD_CTX* evp_;
};

}  // namespace

struct Sha256::Context {
  Digester digester{EVP_sha256()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) { context_->digester.update(bytes); }

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  context_->digester.finish(digest);
  return digest;
}

struct Sha1::Context {
  Digester digester{EVP_sha1()};
};

Sha1::Sha1() : context_(std::make_unique<Context>()) {}
Sha1::~Sha1() = default;

void Sha1::update(std::span<const std::byte> bytes) { context_->digester.update(bytes); }

Sha1Digest Sha1::finish() {
  Sha1Digest digest;
  context_->digester.finish(digest);
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(std::span<const std::byte> digest) {
  std::string text;
  for (const std::byte b : digest) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

size_t TextHash::operator()(std::string_view text) const {
  static const uint64_t kSeed = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return XXH3_64bits_withSeed(text.data(), text.size(), kSeed);
}

}  // namespace trtmc
