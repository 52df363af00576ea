#include "tests/support/tiny_checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

constexpr std::string_view kNamedTokens[] = {"<|begin_of_text|>",
                                             "<|end_of_text|>",
                                             "<think>",
                                             "</think>",
                                             "<|finetune_right_pad_id|>",
                                             "<|reserved_special_token_2|>",
                                             "<|start_header_id|>",
                                             "<|end_header_id|>",
                                             "<|eom_id|>",
                                             "<|eot_id|>",
                                             "<|python_tag|>",
                                             "<|im_start|>",
                                             "<|im_end|>",
                                             "<tool_response>",
                                             "</tool_response>",
                                             "<tool_call>",
                                             "</tool_call>",
                                             "<code>",
                                             "</code>"};
constexpr int kFirstNamed = 256;
constexpr int kPad = 260;
constexpr int kEndOfTurn = 268;

constexpr std::string_view kSplitPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// SplitMix64 (Steele, Lea, Flood, 2014): one 64-bit state, good enough for weights.
class Generator {
 public:
  explicit Generator(uint64_t state) : state_(state) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [-1, 1).
  double symmetric() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }

 private:
  uint64_t state_;
};

// FNV-1a: gives each tensor its own stream, whatever else is in the file.
uint64_t name_seed(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

int head_dim(const TinyCheckpointOptions& options) {
  return options.head_dim > 0 ? options.head_dim : options.hidden_size / options.num_heads;
}

std::vector<std::pair<std::string, Shape>> tensor_shapes(const TinyCheckpointOptions& options) {
  const int64_t hidden = options.hidden_size;
  const int64_t mlp = options.intermediate_size;
  const int64_t q_width = int64_t{options.num_heads} * head_dim(options);
  const int64_t kv_width = int64_t{options.num_kv_heads} * head_dim(options);
  std::vector<std::pair<std::string, Shape>> shapes;
  shapes.emplace_back("model.embed_tokens.weight", Shape{options.vocab_size, hidden});
  for (int layer = 0; layer < options.num_layers; ++layer) {
    const auto add = [&](std::string_view name, Shape shape) {
      shapes.emplace_back(fmt::format("model.layers.{}.{}.weight", layer, name), std::move(shape));
    };
    add("input_layernorm", {hidden});
    add("mlp.down_proj", {hidden, mlp});
    add("mlp.gate_proj", {mlp, hidden});
    add("mlp.up_proj", {mlp, hidden});
    add("post_attention_layernorm", {hidden});
    add("self_attn.k_proj", {kv_width, hidden});
    add("self_attn.o_proj", {hidden, q_width});
    add("self_attn.q_proj", {q_width, hidden});
    add("self_attn.v_proj", {kv_width, hidden});
  }
  shapes.emplace_back("model.norm.weight", Shape{hidden});
  if (!options.tied) shapes.emplace_back("lm_head.weight", Shape{options.vocab_size, hidden});
  return shapes;
}

// Norms near 1, matrices of variance 1 / fan-in, so that activations stay of order 1.
std::vector<float> random_values(std::string_view name, const Shape& shape, uint64_t seed) {
  Generator generator(name_seed(name) ^ (seed * 0x9e3779b97f4a7c15));
  const bool norm = shape.size() == 1;
  const double width = norm ? 0.2 : std::sqrt(3.0 / static_cast<double>(shape.back()));
  std::vector<float> values(static_cast<size_t>(shape[0] * (norm ? 1 : shape[1])));
  for (float& value : values)
    value = static_cast<float>((norm ? 1 : 0) + width * generator.symmetric());
  return values;
}

Json layer_list(int num_layers, const std::function<Json(int)>& entry) {
  Json::Array list;
  for (int i = 0; i < num_layers; ++i) list.push_back(entry(i));
  return list;
}

// Like the published config.json, key by key.
Json make_config(const TinyCheckpointOptions& options) {
  const int layers = options.num_layers;
  const bool f32 = options.dtype == DType::kF32;
  Json config = Json::Object{
      {"architectures", Json::Array{"SmolLM3ForCausalLM"}},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"bos_token_id", kFirstNamed},
      {"eos_token_id", kEndOfTurn},
      {"hidden_act", "silu"},
      {"hidden_size", options.hidden_size},
      {"initializer_range", 0.02},
      {"intermediate_size", options.intermediate_size},
      {"layer_types", layer_list(layers, [](int) { return "full_attention"; })},
      {"max_position_embeddings", options.context_length},
      {"max_window_layers", layers},
      {"mlp_bias", false},
      {"model_type", "smollm3"},
      {"no_rope_layer_interval", 4},
      {"no_rope_layers", layer_list(layers, [](int i) { return (i + 1) % 4 != 0 ? 1 : 0; })},
      {"num_attention_heads", options.num_heads},
      {"num_hidden_layers", layers},
      {"num_key_value_heads", options.num_kv_heads},
      {"pad_token_id", kPad},
      {"pretraining_tp", 2},
      {"rms_norm_eps", 1e-6},
      {"rope_scaling", nullptr},
      {"rope_theta", options.rope_theta},
      {"sliding_window", nullptr},
      {"tie_word_embeddings", options.tied},
      {"torch_dtype", f32                            ? "float32"
                      : options.dtype == DType::kF16 ? "float16"
                                                     : "bfloat16"},
      {"transformers_version", "4.54.0.dev0"},
      {"use_cache", false},
      {"use_sliding_window", false},
      {"vocab_size", options.vocab_size}};
  if (options.head_dim > 0) config.set("head_dim", options.head_dim);
  for (const auto& [key, value] : *options.config.object()) config.set(key, value);
  return config;
}

Json make_generation_config(const TinyCheckpointOptions& options) {
  Json config = Json::Object{{"bos_token_id", kFirstNamed},
                             {"do_sample", true},
                             {"eos_token_id", kEndOfTurn},
                             {"pad_token_id", kPad},
                             {"temperature", 0.6},
                             {"top_p", 0.95},
                             {"transformers_version", "4.54.0.dev0"}};
  for (const auto& [key, value] : *options.generation_config.object()) config.set(key, value);
  return config;
}

void append_utf8(std::string& out, unsigned code_point) {  // Below U+0800.
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else {
    out += static_cast<char>(0xc0 | code_point >> 6);
    out += static_cast<char>(0x80 | (code_point & 0x3f));
  }
}

// The vocabulary's name of each byte: itself where it prints, else U+0100 and on (GPT-2's table).
Json byte_vocabulary() {
  Json::Object vocabulary;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                        (byte >= 0xae && byte <= 0xff);
    std::string name;
    append_utf8(name, prints ? byte : next++);
    vocabulary.emplace_back(name, static_cast<int>(byte));
  }
  return vocabulary;
}

Json named_token(int index, std::string_view name) {
  const bool special = name.starts_with("<|");
  return Json::Object{{"id", kFirstNamed + index}, {"content", name}, {"single_word", false},
                      {"lstrip", false},           {"rstrip", false}, {"normalized", false},
                      {"special", special}};
}

Json make_tokenizer() {
  Json::Array added;
  for (const std::string_view name : kNamedTokens)
    added.push_back(named_token(static_cast<int>(added.size()), name));
  const Json split = Json::Object{{"type", "Split"},
                                  {"pattern", Json::Object{{"Regex", kSplitPattern}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}};
  const auto byte_level = [](bool use_regex) {
    return Json::Object{{"type", "ByteLevel"},
                        {"add_prefix_space", use_regex},
                        {"trim_offsets", true},
                        {"use_regex", use_regex}};
  };
  return Json::Object{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", Json::Object{{"type", "Sequence"},
                                     {"pretokenizers", Json::Array{split, byte_level(false)}}}},
      {"post_processor", nullptr},
      {"decoder", byte_level(true)},
      {"model", Json::Object{{"type", "BPE"},
                             {"dropout", nullptr},
                             {"unk_token", nullptr},
                             {"continuing_subword_prefix", nullptr},
                             {"end_of_word_suffix", nullptr},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", true},
                             {"vocab", byte_vocabulary()},
                             {"merges", Json::Array{}}}}};
}

Json make_tokenizer_config(const TinyCheckpointOptions& options) {
  Json::Object decoder;
  for (int i = 0; i < static_cast<int>(std::size(kNamedTokens)); ++i) {
    Json token = named_token(i, kNamedTokens[i]);
    std::erase_if(*token.object(), [](const auto& member) { return member.first == "id"; });
    decoder.emplace_back(fmt::to_string(kFirstNamed + i), token);
  }
  return Json::Object{{"added_tokens_decoder", decoder},
                      {"bos_token", nullptr},
                      {"clean_up_tokenization_spaces", true},
                      {"eos_token", "<|im_end|>"},
                      {"model_max_length", options.context_length},
                      {"pad_token", "<|im_end|>"},
                      {"tokenizer_class", "PreTrainedTokenizerFast"}};
}

void write_weights(const std::filesystem::path& path, const TinyCheckpointOptions& options) {
  const std::map<std::string, std::vector<float>> weights = tiny_weights(options);
  std::vector<OwnedTensor> tensors;
  for (const auto& [name, shape] : tensor_shapes(options))
    tensors.push_back(make_tensor(name, options.dtype, shape, weights.at(name)));
  if (!options.sharded) {
    write_safetensors(path / "model.safetensors", tensors);
    return;
  }
  // The second shard begins at the gate projection of the middle layer.
  const std::ptrdiff_t border = 1 + 9 * (options.num_layers / 2) + 2;
  const std::vector<OwnedTensor> shards[] = {{tensors.begin(), tensors.begin() + border},
                                             {tensors.begin() + border, tensors.end()}};
  Json::Object weight_map;
  int64_t total_size = 0;
  for (int i = 0; i < 2; ++i) {
    const std::string file = fmt::format("model-0000{}-of-00002.safetensors", i + 1);
    write_safetensors(path / file, shards[i]);
    for (const OwnedTensor& tensor : shards[i]) {
      weight_map.emplace_back(tensor.name, file);
      total_size += static_cast<int64_t>(tensor.bytes.size());
    }
  }
  write_text(path / "model.safetensors.index.json",
             Json(Json::Object{{"metadata", Json::Object{{"total_size", total_size}}},
                               {"weight_map", weight_map}})
                 .dump(2));
}

}  // namespace

void write_tiny_checkpoint(const std::filesystem::path& path,
                           const TinyCheckpointOptions& options) {
  std::filesystem::create_directories(path);
  write_text(path / "config.json", make_config(options).dump(2));
  write_text(path / "generation_config.json", make_generation_config(options).dump(2));
  if (options.tokenizer) {
    write_text(path / "tokenizer.json", make_tokenizer().dump(2));
    write_text(path / "tokenizer_config.json", make_tokenizer_config(options).dump(2));
  }
  if (!options.chat_template.empty())
    write_text(path / "chat_template.jinja", options.chat_template);
  write_weights(path, options);
}

std::map<std::string, std::vector<float>> tiny_weights(const TinyCheckpointOptions& options) {
  std::map<std::string, std::vector<float>> weights;
  for (const auto& [name, shape] : tensor_shapes(options))
    weights.emplace(name, random_values(name, shape, options.seed));
  return weights;
}

}  // namespace trtmc
