#include "checkpoint/gguf_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "checkpoint/gguf_config.h"
#include "checkpoint/gguf_tensor.h"
#include "checkpoint/gguf_tokenizer.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kOutput = "output.weight";
constexpr std::string_view kRopeFactors = "rope_freqs.weight";
constexpr int kMaxParts = 1000;

// "<name>-00002-of-00003" in its parts; a number that no part can have makes it another name.
struct PartName {
  std::string name;
  int count;
};

std::optional<int> five_digits(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.size() != 5 || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

std::optional<PartName> split_part_name(std::string_view stem) {
  constexpr size_t kTail = 15;  // "-00002-of-00003"
  if (stem.size() <= kTail) return std::nullopt;
  const std::string_view tail = stem.substr(stem.size() - kTail);
  const auto part = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !part || !count) return std::nullopt;
  if (*part < 1 || *part > *count || *count > kMaxParts) return std::nullopt;
  return PartName{std::string(stem.substr(0, stem.size() - kTail)), *count};
}

std::vector<fs::path> part_paths(const fs::path& path) {
  const auto parts = split_part_name(path.stem().string());
  if (!parts) return {path};
  std::vector<fs::path> paths;
  for (int part = 1; part <= parts->count; ++part) {
    paths.push_back(path.parent_path() / fmt::format("{}-{:05}-of-{:05}{}", parts->name, part,
                                                     parts->count, kExtension));
    std::error_code ignored;
    if (!fs::exists(paths.back(), ignored)) {
      throw Error(
          ErrorCode::kNotFound,
          fmt::format("{}: part {} of {} is not there", paths.back().string(), part, parts->count),
          "download all parts into one folder");
    }
  }
  return paths;
}

class GgufCheckpoint : public Checkpoint {
 public:
  explicit GgufCheckpoint(const fs::path& path) : path_(path) {
    for (const fs::path& part : part_paths(path)) files_.emplace_back(part);
    with_context(path.filename().string(), [&] {
      collect_tensors();
      check_parts();
      config_ = gguf_config(metadata(), tensor_facts());
      generation_config_ = gguf_generation_config(metadata());
      make_tensors();
    });
  }

  std::string name() const override {
    const std::string stem = path_.stem().string();
    const auto part = split_part_name(stem);
    return part ? part->name : stem;
  }
  fs::path path() const override {
    return path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override { return generation_config_; }

  std::optional<std::string> text_file(std::string_view name) const override {
    return with_context(path_.filename().string(), [&]() -> std::optional<std::string> {
      if (name == "tokenizer.json") return dumped(gguf_tokenizer(metadata()));
      if (name == "tokenizer_config.json") return dumped(gguf_tokenizer_config(metadata()));
      if (name == "chat_template.jinja") return text_value("tokenizer.chat_template");
      if (name == "README.md") return model_card();
      return std::nullopt;
    });
  }

  std::vector<std::string> tensor_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }

  std::optional<CheckpointTensor> tensor(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return found->second;
  }

  std::vector<fs::path> files() const override {
    std::vector<fs::path> paths;
    for (const GgufFile& file : files_) paths.push_back(file.path());
    return paths;
  }

 private:
  // The first part's speaks for all.
  const GgufMetadata& metadata() const { return files_.front().metadata(); }

  void release_bytes(std::span<const std::byte> part) const override {
    for (const GgufFile& file : files_) file.release(part);
  }

  void collect_tensors() {
    for (const GgufFile& file : files_) {
      for (const auto& [name, tensor] : file.tensors()) {
        if (in_file_.emplace(name, tensor).second) continue;
        throw Error(ErrorCode::kCorrupt, fmt::format("tensor \"{}\" is in two parts", name));
      }
    }
  }

  void check_parts() const {
    const auto parts = static_cast<int64_t>(files_.size());
    for (int64_t part = 0; part < parts; ++part) {
      const GgufFile& file = files_[static_cast<size_t>(part)];
      const int64_t count =
          file.metadata().find_integer("split.count", 0, UINT16_MAX).value_or(parts == 1 ? 1 : 0);
      const int64_t number = file.metadata().find_integer("split.no", 0, UINT16_MAX).value_or(0);
      // A file that was never split may say that it is split into none.
      if ((count == parts || (parts == 1 && count == 0)) && number == part) continue;
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{} says that it is part {} of {}, its name that it is {} of {}",
                              file.path().filename().string(), number + 1, count, part + 1, parts),
                  "keep the names that the parts were published under");
    }
    const auto total = metadata().find_integer("split.tensors.count", 0, INT64_MAX);
    if (total && parts > 1 && static_cast<uint64_t>(*total) != in_file_.size()) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{} tensors in all parts, expected {}", in_file_.size(), *total));
    }
  }

  bool has_bias(std::string_view kind) const {
    return std::any_of(in_file_.begin(), in_file_.end(), [&](const auto& entry) {
      const std::string& name = entry.first;
      return name.ends_with(".bias") && name.find(kind) != std::string::npos;
    });
  }

  GgufTensorFacts tensor_facts() const {
    const auto embedding = in_file_.find(kEmbedding);
    if (embedding == in_file_.end()) {
      throw Error(ErrorCode::kCorrupt, fmt::format("tensor \"{}\" is missing", kEmbedding));
    }
    GgufTensorFacts facts{.vocab_size = embedding->second.shape[0],
                          .tied = !in_file_.contains(kOutput),
                          .attention_bias = has_bias(".attn_"),
                          .mlp_bias = has_bias(".ffn_"),
                          .factors = {}};
    if (const auto factors = in_file_.find(kRopeFactors); factors != in_file_.end()) {
      const GgufTensor& tensor = factors->second;
      if (tensor.shape.size() != 1 || tensor.type->plain != DType::kF32) {
        throw Error(ErrorCode::kCorrupt,
                    fmt::format("tensor \"{}\" is no vector of F32", kRopeFactors));
      }
      facts.factors.resize(static_cast<size_t>(tensor.shape[0]));
      decode_blocks(*tensor.type, tensor.bytes, facts.factors);
    }
    return facts;
  }

  void make_tensors() {
    const JsonCursor config(config_);
    const GgufHeads heads{config.at("num_attention_heads").integer(),
                          config.at("num_key_value_heads").integer()};
    for (const auto& [name, tensor] : in_file_) {
      if (name == kRopeFactors) continue;  // Read into the configuration.
      auto [at, is_new] =
          tensors_.emplace(gguf_checkpoint_name(name), gguf_checkpoint_tensor(name, tensor, heads));
      if (!is_new) {
        throw Error(ErrorCode::kCorrupt,
                    fmt::format("tensor \"{}\" is there under two names", at->first));
      }
    }
  }

  std::optional<std::string> text_value(std::string_view key) const {
    const auto text = metadata().find_text(key);
    return text ? std::optional<std::string>(*text) : std::nullopt;
  }

  static std::optional<std::string> dumped(const std::optional<Json>& json) {
    return json ? std::optional(json->dump()) : std::nullopt;
  }

  // The front matter of a model card, which names the licence.
  std::optional<std::string> model_card() const {
    const auto licence = text_value("general.license");
    if (!licence || licence->find('\n') != std::string::npos) return std::nullopt;
    return fmt::format("---\nlicense: {}\n---\n", *licence);
  }

  fs::path path_;
  std::vector<GgufFile> files_;
  std::map<std::string, GgufTensor, std::less<>> in_file_;  // By the file's names.
  Json config_;
  Json generation_config_;
  std::map<std::string, CheckpointTensor, std::less<>> tensors_;
};

}  // namespace

std::shared_ptr<const Checkpoint> open_gguf(const std::filesystem::path& path) {
  return std::make_shared<GgufCheckpoint>(path);
}

}  // namespace trtmc
