#include <fmt/format.h>
#include <zstd.h>

#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "verify/verify.h"

namespace trtmc {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

std::string decompress(std::span<const std::byte> bytes) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          ZSTD_freeDStream);
  std::string out;
  std::vector<char> chunk(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer piece{chunk.data(), chunk.size(), 0};
    const size_t in_before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &piece, &in);
    if (ZSTD_isError(left)) {
      throw Error(ErrorCode::kCorrupt, fmt::format("not zstd: {}", ZSTD_getErrorName(left)));
    }
    if (left != 0 && piece.pos == 0 && in.pos == in_before) {
      throw Error(ErrorCode::kCorrupt, "cut off in the middle of its zstd frame");
    }
    if (out.size() + piece.pos > kMaxBytes) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("more than {} bytes", kMaxBytes));
    }
    out.append(chunk.data(), piece.pos);
  }
  return out;
}

Json read_json(const std::filesystem::path& path) {
  return with_context(path.string(), [&] {
    if (path.extension() != ".zst") return Json::parse(read_file(path, kMaxBytes));
    const MappedFile file(path);
    return Json::parse(decompress(file.bytes()));
  });
}

}  // namespace

Json read_goldens(const std::filesystem::path& path) {
  Json file = read_json(path);
  const JsonCursor root(file, path.string());
  if (!root.find("goldens")) return file;
  Json::Array goldens;
  for (const JsonCursor& name : root.at("goldens").elements()) {
    goldens.push_back(read_json(path.parent_path() / name.string()));
  }
  Json out;
  out.set("thresholds", root.at("thresholds").json());
  out.set("goldens", std::move(goldens));
  return out;
}

}  // namespace trtmc
