#include "hub/repository_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "hub/hub_id.h"

namespace trtmc {
namespace {

constexpr int kMaxJsonDepth = 32;
constexpr size_t kMaxNameBytes = 1024;
constexpr int64_t kMaxFileBytes = int64_t{1} << 42;  // 4 TiB.
constexpr std::string_view kConfigName = "config.json";
constexpr std::string_view kSingleFileName = "model.safetensors";

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// A path that stays below the folder it is put in, and that a terminal can be shown.
bool is_inside(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || find_invalid_utf8(name)) return false;
  if (std::any_of(name.begin(), name.end(), is_ascii_control)) return false;
  while (true) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

// A name that needs no thought in a file system, a URL or a shell.
bool is_plain(std::string_view name) {
  return name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

FileDigest read_digest(const JsonCursor& file, uint64_t bytes) {
  if (const auto lfs = file.find_set("lfs")) {
    // "sha256" in a model's listing, "oid" in a folder's.
    const auto sha256 = lfs->find_set("sha256");
    const std::string& hex = sha256 ? sha256->string() : lfs->at("oid").string();
    if (!is_hex(hex, 64)) lfs->fail("its sha256 is not 64 hexadecimal digits");
    const auto size = lfs->find_set("size");
    if (size && static_cast<uint64_t>(size->integer_in(0, kMaxFileBytes)) != bytes) {
      size->fail(fmt::format("{}, but the file's own size is {}", size->integer(), bytes));
    }
    return {FileDigest::Kind::kSha256, hex};
  }
  const JsonCursor blob = file.at("blobId");
  if (!is_hex(blob.string(), 40)) blob.fail("not 40 hexadecimal digits");
  return {FileDigest::Kind::kGitSha1, blob.string()};
}

RepositoryFile read_file_entry(const JsonCursor& file) {
  const JsonCursor name = file.at("rfilename");
  if (!is_inside(name.string())) {
    name.fail(fmt::format("\"{}\", expected a path inside the repository",
                          replace_invalid_utf8(name.string()).substr(0, kMaxNameBytes)));
  }
  const auto bytes = static_cast<uint64_t>(file.at("size").integer_in(0, kMaxFileBytes));
  return {name.string(), bytes, read_digest(file, bytes)};
}

RepositoryListing read_listing(const JsonCursor& root) {
  RepositoryListing listing;
  const JsonCursor commit = root.at("sha");
  if (!is_commit(commit.string())) commit.fail("not a commit of forty hexadecimal digits");
  listing.commit = commit.string();
  for (const JsonCursor& file : root.at("siblings").elements()) {
    listing.files.push_back(read_file_entry(file));
  }
  const auto by_name = [](const RepositoryFile& a, const RepositoryFile& b) {
    return a.name < b.name;
  };
  std::sort(listing.files.begin(), listing.files.end(), by_name);
  const auto twice =
      std::adjacent_find(listing.files.begin(), listing.files.end(),
                         [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != listing.files.end()) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the file \"{}\" is listed twice", twice->name));
  }
  return listing;
}

bool is_text_asset(std::string_view name) {
  constexpr std::string_view kNames[] = {kConfigName, "generation_config.json",
                                         "special_tokens_map.json", "added_tokens.json",
                                         "README.md"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         name.starts_with("tokenizer") || name.starts_with("chat_template");
}

// The weights: one file, else the shards, else every safetensors file of the top folder.
std::vector<RepositoryFile> weight_files(const std::vector<RepositoryFile>& top) {
  std::vector<RepositoryFile> all, of_model;
  for (const RepositoryFile& file : top) {
    if (file.name == kSingleFileName) return {file};
    const bool is_index = file.name.ends_with(".safetensors.index.json");
    if (!file.name.ends_with(".safetensors") && !is_index) continue;
    all.push_back(file);
    if (file.name.starts_with("model")) of_model.push_back(file);
  }
  return of_model.empty() ? all : of_model;
}

// A repository of GGUFs mostly has no config.json either.
void refuse_ggufs(const RepositoryListing& listing) {
  for (const RepositoryFile& file : listing.files) {
    if (!file.name.ends_with(".gguf")) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("no safetensors; the weights are GGUFs ({})", file.name),
                "download the one you want: `trtmc build` takes the file");
  }
}

[[noreturn]] void refuse_without_safetensors(const RepositoryListing& listing) {
  constexpr std::string_view kOtherFormats[] = {".bin", ".pt", ".pth", ".h5", ".msgpack", ".onnx"};
  refuse_ggufs(listing);
  for (const RepositoryFile& file : listing.files) {
    for (const std::string_view extension : kOtherFormats) {
      if (!file.name.ends_with(extension)) continue;
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("no safetensors; the weights are in another format ({})", file.name),
                  "load the model with Transformers and save it with save_pretrained(), which "
                  "writes safetensors");
    }
  }
  throw Error(ErrorCode::kNotFound, "no weights: the repository has no safetensors");
}

}  // namespace

RepositoryListing parse_listing(std::string_view json) {
  try {
    const Json root = Json::parse(json, kMaxJsonDepth);
    return read_listing(JsonCursor(root));
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("the server's list of files makes no sense: {}", error.what()));
  }
}

std::vector<RepositoryFile> files_for_build(const RepositoryListing& listing) {
  std::vector<RepositoryFile> top, needed;
  for (const RepositoryFile& file : listing.files) {
    if (is_plain(file.name)) top.push_back(file);
  }
  for (const RepositoryFile& file : top) {
    if (is_text_asset(file.name)) needed.push_back(file);
  }
  if (std::none_of(needed.begin(), needed.end(),
                   [](const auto& file) { return file.name == kConfigName; })) {
    refuse_ggufs(listing);
    throw Error(ErrorCode::kNotFound,
                "no config.json: the repository holds no model that "
                "Transformers could load");
  }
  const std::vector<RepositoryFile> weights = weight_files(top);
  if (std::none_of(weights.begin(), weights.end(),
                   [](const auto& file) { return file.name.ends_with(".safetensors"); })) {
    refuse_without_safetensors(listing);
  }
  needed.insert(needed.end(), weights.begin(), weights.end());
  std::stable_sort(needed.begin(), needed.end(),
                   [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return needed;
}

}  // namespace trtmc
