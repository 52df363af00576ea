#include "backends/tensorrt/plan_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace trtmc::tensorrt {
namespace {

// Of what is written here: another one when the graph or its settings change.
constexpr std::string_view kGeneration = "trtmc plan 1";

std::string hashed(std::string_view text) { return to_hex(sha256(as_bytes(text))); }

std::string text_of(const EngineShape& shape) {
  std::string text;
  for (const auto& [axis, length] : shape.fixed) text += fmt::format("{} {}\n", axis, length);
  for (const EngineProfile& profile : shape.profiles) {
    text += "profile\n";
    for (const auto& [axis, range] : profile) {
      text += fmt::format("{} {} {} {}\n", axis, range.least, range.usual, range.most);
    }
  }
  return text;
}

// With the folders above it that are missing, all for the user alone.
void make_folder(const std::filesystem::path& folder) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : folder) {
    made /= part;
    if (mkdir(made.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      throw system_error(made, "can't make the folder", errno);
    }
  }
}

// Engines are code: who may write into their folder chooses what runs.
void check_folder(const std::filesystem::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) {
    throw system_error(folder, "can't be looked up", errno);
  }
  const bool ours = status.st_uid == geteuid() || status.st_uid == 0;
  if (ours && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: others may write into the folder, and engines are code", folder.string()));
}

}  // namespace

std::string plan_name(const PlanKey& key) {
  const std::string text = fmt::format(
      "{}\nmodel {}\nTensorRT {}\nGPU {}\nroute {}\nprecision {}\nfp32 {}\n{}", kGeneration,
      to_hex(key.model), key.tensorrt, key.gpu, decoder_route_name(key.route),
      dtype_name(key.precision), fmt::join(key.fp32_layers, " "), text_of(key.shape));
  return hashed(text) + ".plan";
}

std::string timing_name(std::string_view tensorrt, std::string_view gpu) {
  return hashed(fmt::format("{}\nTensorRT {}\nGPU {}\n", kGeneration, tensorrt, gpu)) + ".timing";
}

std::optional<std::filesystem::path> plan_folder(const Environment& environment) {
  const auto below = [](const std::filesystem::path& cache) {
    return cache / "trtmc" / "tensorrt";
  };
  const std::filesystem::path named = environment("XDG_CACHE_HOME").value_or("");
  if (named.is_absolute()) return below(named);
  const std::filesystem::path home = environment("HOME").value_or("");
  if (!home.is_absolute()) return std::nullopt;
  return below(home / ".cache");
}

PlanCache::PlanCache(std::optional<std::filesystem::path> folder) : folder_(std::move(folder)) {}

std::optional<std::vector<std::byte>> PlanCache::find(const std::string& name) const {
  if (!folder_) return std::nullopt;
  try {
    if (!has_file(*folder_ / name)) return std::nullopt;
    check_folder(*folder_);
    const MappedFile file(*folder_ / name);
    const std::span<const std::byte> bytes = file.bytes();
    constexpr size_t kDigest = sizeof(Sha256Digest);
    if (bytes.size() < kDigest ||
        !std::ranges::equal(sha256(bytes.subspan(kDigest)), bytes.first(kDigest))) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: damaged", (*folder_ / name).string()));
    }
    return std::vector<std::byte>(bytes.begin() + kDigest, bytes.end());
  } catch (const Error& error) {
    log_warning("an engine that was built before is not used: {}", error.what());
    return std::nullopt;
  }
}

void PlanCache::keep(const std::string& name, std::span<const std::byte> bytes) const {
  if (!folder_) return;
  try {
    make_folder(*folder_);
    check_folder(*folder_);
    const Sha256Digest digest = sha256(bytes);
    AtomicFile file(*folder_ / name, digest.size() + bytes.size(), AtomicFile::IfExists::kReplace);
    file.write_at(0, digest);
    file.write_at(digest.size(), bytes);
    file.commit();
  } catch (const Error& error) {
    log_warning("an engine is not kept for the next time: {}", error.what());
  }
}

}  // namespace trtmc::tensorrt
