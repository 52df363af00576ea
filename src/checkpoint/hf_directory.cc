#include "checkpoint/hf_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigName = "config.json";
constexpr std::string_view kGenerationConfigName = "generation_config.json";
constexpr std::string_view kSingleFileName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
// Files that a model's text side is made of, besides those above.
constexpr std::string_view kTextNames[] = {"added_tokens.json",     "chat_template.jinja",
                                           "chat_template.json",    "tokenizer.json",
                                           "tokenizer_config.json", "special_tokens_map.json"};

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxTextBytes = uint64_t{512} << 20;

// Whether there is a "#" or "//" outside of strings: model cards show settings with such comments.
bool has_comment(std::string_view text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text[i] == '#' || text.substr(i, 2) == "//") {
      return true;
    }
  }
  return false;
}

Json read_json(const fs::path& path, Json::EqualKeys equal_keys = Json::EqualKeys::kLastWins) {
  return with_context(path.filename().string(), [&] {
    const std::string text = read_file(path, kMaxConfigBytes);
    try {
      Json json = Json::parse(text, 32, equal_keys);
      if (json.object() == nullptr) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{}, expected an object", json.kind_name()));
      }
      return json;
    } catch (const Error& error) {
      if (!has_comment(text)) throw;
      throw Error(
          error.code(),
          fmt::format("{}; the file has a comment, which JSON does not allow", error.what()),
          "model cards explain settings with \"# ...\"; delete from the # to the line's end");
    }
  });
}

// A name that stays inside the folder, whatever the index says.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// "weight_map" of the index: tensor to shard.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const Json index = read_json(path, Json::EqualKeys::kRefuse);
  return with_context(kIndexName, [&] {
    std::map<std::string, std::string> shard_of;
    for (const auto& [name, value] : JsonCursor(index).at("weight_map").members()) {
      if (!is_plain_name(value.string()))
        value.fail(
            fmt::format("\"{}\", expected the name of a file in this folder", value.string()));
      if (!value.string().ends_with(".safetensors"))
        value.fail(fmt::format("\"{}\", expected a .safetensors file", value.string()));
      shard_of.emplace(name, value.string());
    }
    if (shard_of.empty()) throw Error(ErrorCode::kInvalidArgument, "weight_map names no tensor");
    return shard_of;
  });
}

class HfDirectory final : public Checkpoint {
 public:
  explicit HfDirectory(const fs::path& path) : path_(path), config_(read_json(path / kConfigName)) {
    if (has_file(path / kGenerationConfigName))
      generation_config_ = read_json(path / kGenerationConfigName);
    if (has_file(path / kSingleFileName)) {
      open_single_file();
    } else if (has_file(path / kIndexName)) {
      open_shards();
    } else {
      refuse_without_weights();
    }
    note_files();
  }

  std::string name() const override { return fs::weakly_canonical(path_).filename().string(); }
  fs::path path() const override { return path_; }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override { return generation_config_; }

  std::optional<std::string> text_file(std::string_view name) const override {
    if (!has_file(path_ / name)) return std::nullopt;
    return read_file(path_ / name, kMaxTextBytes);
  }

  std::vector<std::string> tensor_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, shard] : shard_of_) names.push_back(name);
    return names;
  }

  std::optional<CheckpointTensor> tensor(std::string_view name) const override {
    const auto found = shard_of_.find(name);
    if (found == shard_of_.end()) return std::nullopt;
    return found->second->tensor(name);
  }

  std::vector<fs::path> files() const override { return files_; }

 private:
  void release_bytes(std::span<const std::byte> part) const override {
    for (const SafetensorsFile& shard : shards_) shard.release(part);
  }

  void open_single_file() {
    const SafetensorsFile& file = shards_.emplace_back(path_ / kSingleFileName);
    for (const auto& [name, entry] : file.entries()) shard_of_.emplace(name, &file);
  }

  void open_shards() {
    const std::map<std::string, std::string> index = read_index(path_ / kIndexName);
    std::set<std::string> shard_names;
    for (const auto& [name, shard] : index) shard_names.insert(shard);
    shards_.reserve(shard_names.size());  // Its elements are pointed at.
    for (const std::string& shard : shard_names) {
      if (!has_file(path_ / shard)) {
        throw Error(ErrorCode::kNotFound,
                    fmt::format("{}: names {}, which is not there", kIndexName, shard),
                    "download the missing file");
      }
      add_shard(index, shards_.emplace_back(path_ / shard));
    }
    for (const auto& [name, shard] : index) {
      if (!shard_of_.contains(name)) {
        throw Error(ErrorCode::kCorrupt, fmt::format("{}: tensor \"{}\" is missing, though {} says "
                                                     "that it is there",
                                                     shard, name, kIndexName));
      }
    }
  }

  void add_shard(const std::map<std::string, std::string>& index, const SafetensorsFile& file) {
    const std::string shard = file.path().filename().string();
    for (const auto& [name, entry] : file.entries()) {
      const auto indexed = index.find(name);
      if (indexed == index.end() || indexed->second != shard) {
        throw Error(ErrorCode::kCorrupt,
                    fmt::format("{}: tensor \"{}\" is here, but {} {}", shard, name, kIndexName,
                                indexed == index.end()
                                    ? "does not name it"
                                    : fmt::format("says that it is in {}", indexed->second)));
      }
      shard_of_.emplace(name, &file);
    }
  }

  [[noreturn]] void refuse_without_weights() const {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".bin" && extension != ".pt" && extension != ".pth") continue;
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: the weights are PyTorch files ({}), expected safetensors",
                              path_.string(), entry.path().filename().string()),
                  "load the model with Transformers and save it with save_pretrained(), which "
                  "writes safetensors");
    }
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no weights, expected {} or {}",
                                                  path_.string(), kSingleFileName, kIndexName));
  }

  void note_files() {
    files_ = {path_ / kConfigName};
    if (!generation_config_.is_null()) files_.push_back(path_ / kGenerationConfigName);
    if (!has_file(path_ / kSingleFileName)) files_.push_back(path_ / kIndexName);
    for (const SafetensorsFile& shard : shards_) files_.push_back(shard.path());
    for (const std::string_view name : kTextNames) {
      if (has_file(path_ / name)) files_.push_back(path_ / name);
    }
    std::sort(files_.begin(), files_.end());
  }

  fs::path path_;
  Json config_;
  Json generation_config_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, const SafetensorsFile*, std::less<>> shard_of_;
  std::vector<fs::path> files_;
};

}  // namespace

std::shared_ptr<const Checkpoint> open_hf_directory(const std::filesystem::path& path) {
  constexpr const char* kExpected =
      "give a folder with config.json and model.safetensors, as Hugging Face's libraries save it";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such folder", path.string()), kExpected);
  }
  if (!fs::is_directory(path, ignored)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a file, expected a checkpoint's folder", path.string()),
                kExpected);
  }
  if (!has_file(path / kConfigName)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no config.json", path.string()), kExpected);
  }
  return std::make_shared<HfDirectory>(path);
}

}  // namespace trtmc
