#include "hub/file_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/retry.h"

namespace trtmc {
namespace {

constexpr size_t kStepBytes = 8 << 20;

template <typename Hash>
void hash_file(Hash& hash, const MappedFile& file, uint64_t bytes, const std::stop_token& stop) {
  std::span<const std::byte> rest = file.bytes().first(bytes);
  while (!rest.empty()) {
    if (stop.stop_requested()) throw DownloadStopped();
    const auto step = rest.first(std::min(rest.size(), kStepBytes));
    hash.update(step);
    file.release(step);
    rest = rest.subspan(step.size());
  }
}

}  // namespace

std::string file_digest(const std::filesystem::path& path, uint64_t bytes, FileDigest::Kind kind,
                        const std::stop_token& stop) {
  const MappedFile file(path);
  if (file.bytes().size() < bytes) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: shorter than {} bytes", path.string(), bytes));
  }
  if (kind == FileDigest::Kind::kSha256) {
    Sha256 hash;
    hash_file(hash, file, bytes, stop);
    return to_hex(hash.finish());
  }
  Sha1 hash;
  const std::string head = fmt::format("blob {}", bytes) + '\0';
  hash.update(as_bytes(head));
  hash_file(hash, file, bytes, stop);
  return to_hex(hash.finish());
}

}  // namespace trtmc
