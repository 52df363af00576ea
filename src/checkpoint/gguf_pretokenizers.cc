#include "checkpoint/gguf_pretokenizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/error.h"

namespace trtmc {
namespace {

// GPT-2's own: the pattern is ByteLevel's.
constexpr std::string_view kGpt2 = R"json(
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})json";

// SmolLM, SmolLM2: digits stand alone.
constexpr std::string_view kSmolLm = R"json({"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})json";

// Digits stand in groups of three.
constexpr std::string_view kLlama3 = R"json({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json";

constexpr std::string_view kQwen2 = R"json({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json";

// llama.cpp's own choice for files that name none: no published tokenizer splits so.
constexpr std::string_view kDefault = R"json({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "[\\p{P}\\$\\+<=>\\^~\\|]+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "\\p{N}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "[0-9][0-9][0-9]"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json";

constexpr std::string_view kNfc = R"({"type": "NFC"})";

constexpr GgufPretokenizer kPretokenizers[] = {
    {"default", kDefault, "", false, false},
    {"gpt-2", kGpt2, "", false, false},
    {"llama-bpe", kLlama3, "", true, true},
    {"llama-v3", kLlama3, "", true, true},
    {"llama3", kLlama3, "", true, true},
    {"qwen2", kQwen2, kNfc, false, false},
    // Llama 3's vocabulary without a token in front: SmolLM3 too is converted under this name.
    {"smaug-bpe", kLlama3, "", true, false},
    {"smollm", kSmolLm, "", false, false},
};

}  // namespace

const GgufPretokenizer& find_gguf_pretokenizer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const GgufPretokenizer& known : kPretokenizers) {
    if (known.name == name) return known;
    names.push_back(known.name);
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("tokenizer.ggml.pre is \"{}\", which is not supported, expected one of {}", name,
                  fmt::join(names, ", ")));
}

}  // namespace trtmc
