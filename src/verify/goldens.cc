#include "verify/goldens.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "tensor/dtype.h"

namespace trtmc {
namespace {

constexpr int kMaxSize = 1 << 24;  // Of a vocabulary, a prompt, a hidden state.

constexpr std::array<int8_t, 256> make_base64_values() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}

std::vector<uint8_t> decode_base64(const JsonCursor& cursor) {
  static constexpr std::array<int8_t, 256> kValues = make_base64_values();
  std::string_view text = cursor.string();
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) cursor.fail("not base64");
    bits = (bits << 6) | static_cast<uint8_t>(value);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> num_bits));
  }
  return bytes;
}

std::vector<int> integers(const JsonCursor& cursor, int64_t low, int64_t high) {
  std::vector<int> out;
  for (const JsonCursor& element : cursor.elements()) {
    out.push_back(static_cast<int>(element.integer_in(low, high)));
  }
  return out;
}

// Places in a list of `count` things: rising, so that each is met once.
std::vector<int> rising(const JsonCursor& cursor, size_t count) {
  std::vector<int> out = integers(cursor, 0, static_cast<int64_t>(count) - 1);
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i] <= out[i - 1]) cursor.fail("does not rise");
  }
  return out;
}

GoldenArray array(const JsonCursor& cursor, const Shape& expected) {
  cursor.refuse_unknown_keys({"dtype", "shape", "data"});
  GoldenArray out;
  for (const JsonCursor& size : cursor.at("shape").elements()) out.shape.push_back(size.integer());
  if (out.shape != expected) {
    cursor.fail(fmt::format("shape {}, expected {}", to_string(out.shape), to_string(expected)));
  }
  const std::vector<uint8_t> bytes = decode_base64(cursor.at("data"));
  const std::optional<DType> dtype = parse_dtype(cursor.at("dtype").string());
  if (!dtype) cursor.at("dtype").fail("no element type");
  const auto count = static_cast<size_t>(num_elements(expected));
  if (bytes.size() != count * element_bytes(*dtype)) {
    cursor.fail(fmt::format("{} bytes, but {} of {} needs {}", bytes.size(), to_string(expected),
                            dtype_name(*dtype), count * element_bytes(*dtype)));
  }
  out.values.resize(count);
  read_floats({*dtype, expected, std::as_bytes(std::span(bytes))}, 0, out.values);
  return out;
}

int64_t size_of(const std::vector<int>& values) { return static_cast<int64_t>(values.size()); }

// The largest logits of each token of the continuation, whose own is the first.
void parse_first_logits(const JsonCursor& cursor, const Golden& golden, GoldenRecord& record) {
  const JsonCursor ids = cursor.at("continuation_first");
  for (const JsonCursor& element : ids.elements()) {
    record.continuation_first.push_back(integers(element, 0, golden.vocab_size - 1));
  }
  const size_t tokens = record.continuation.size();
  if (record.continuation_first.size() != tokens) ids.fail("not one list a token");
  const size_t width = tokens == 0 ? 0 : record.continuation_first[0].size();
  for (size_t i = 0; i < tokens; ++i) {
    const std::vector<TokenId>& first = record.continuation_first[i];
    if (first.size() != width || width < 2) ids.fail("lists of one size, of two or more, expected");
    if (first[0] != record.continuation[i]) ids.fail("does not begin with the continuation");
  }
  record.continuation_logits = array(cursor.at("continuation_logits"),
                                     {static_cast<int64_t>(tokens), static_cast<int64_t>(width)});
}

GoldenRecord parse_record(const JsonCursor& cursor, const Golden& golden, const GoldenCase& of,
                          bool with_hidden) {
  GoldenRecord record;
  record.positions = rising(cursor.at("positions"), of.prompt.size());
  const int64_t rows = size_of(record.positions);
  record.logits = array(cursor.at("logits"), {size_of(of.full_positions), golden.vocab_size});
  record.columns = array(cursor.at("columns"), {rows, size_of(golden.columns)});
  record.logsumexp = array(cursor.at("logsumexp"), {rows});
  record.argmax = integers(cursor.at("argmax"), 0, golden.vocab_size - 1);
  if (size_of(record.argmax) != rows) cursor.at("argmax").fail("not one id a position");
  record.margins = array(cursor.at("margins"), {rows});
  record.continuation = integers(cursor.at("continuation"), 0, golden.vocab_size - 1);
  parse_first_logits(cursor, golden, record);
  if (!with_hidden) return record;
  const int64_t states = golden.num_layers + 1;
  record.hidden = GoldenHidden{
      array(cursor.at("hidden"), {states, size_of(of.hidden_positions), golden.hidden_size}),
      array(cursor.at("hidden_norms"), {states, rows}),
      array(cursor.at("hidden_columns"),
            {states, size_of(of.hidden_column_positions), size_of(golden.hidden_columns)})};
  return record;
}

GoldenKvRecord parse_kv_record(const JsonCursor& cursor, const Golden& golden,
                               const GoldenCase& of) {
  GoldenKvRecord record{
      .positions = rising(cursor.at("positions"), of.prompt.size()), .columns = {}, .noise = {}};
  record.columns =
      array(cursor.at("columns"), {size_of(record.positions), size_of(golden.columns)});
  record.noise = array(cursor.at("noise"), {size_of(record.positions)});
  return record;
}

GoldenCase parse_case(const JsonCursor& cursor, const Golden& golden) {
  GoldenCase out;
  out.name = cursor.at("name").string();
  out.prompt = integers(cursor.at("prompt_ids"), 0, golden.vocab_size - 1);
  if (out.prompt.empty()) cursor.at("prompt_ids").fail("empty");
  out.full_positions = rising(cursor.at("full_positions"), out.prompt.size());
  out.hidden_positions = rising(cursor.at("hidden_positions"), out.prompt.size());
  out.hidden_column_positions = rising(cursor.at("hidden_column_positions"), out.prompt.size());
  if (const auto record = cursor.find("float32")) {
    out.float32 = parse_record(*record, golden, out, true);
  }
  if (const auto record = cursor.find("bfloat16")) {
    out.bfloat16 = parse_record(*record, golden, out, false);
  }
  if (const auto record = cursor.find("bfloat16_kv")) {
    out.bfloat16_kv = parse_kv_record(*record, golden, out);
  }
  return out;
}

GoldenPerplexity parse_perplexity(const JsonCursor& cursor, const Golden& golden) {
  GoldenPerplexity out{.window = static_cast<int>(cursor.at("window").integer_in(2, kMaxSize)),
                       .ids = integers(cursor.at("ids"), 0, golden.vocab_size - 1),
                       .nll = {}};
  for (const JsonCursor& sum : cursor.at("nll").elements()) out.nll.push_back(sum.number());
  // A last window of one token has nothing to score.
  const size_t window = static_cast<size_t>(out.window);
  const size_t windows = out.ids.size() / window + (out.ids.size() % window > 1 ? 1 : 0);
  if (out.nll.size() > windows) cursor.at("nll").fail("more sums than windows");
  return out;
}

}  // namespace

std::span<const float> GoldenArray::row(size_t row) const {
  const auto width = static_cast<size_t>(shape.back());
  TRTMC_CHECK((row + 1) * width <= values.size(), "a golden array has no such row");
  return std::span(values).subspan(row * width, width);
}

Golden parse_golden(const Json& json) {
  const JsonCursor root(json);
  const JsonCursor config = root.at("config");
  if (root.at("format").integer() != 1) root.at("format").fail("a golden of another format");
  const auto size = [&](const char* key) {
    return static_cast<int>(config.at(key).integer_in(1, kMaxSize));
  };
  Golden golden{.name = root.at("name").string(),
                .num_layers = size("num_hidden_layers"),
                .hidden_size = size("hidden_size"),
                .vocab_size = size("vocab_size"),
                .columns = {},
                .hidden_columns = {},
                .cases = {},
                .perplexity = {}};
  golden.columns = rising(root.at("columns"), static_cast<size_t>(golden.vocab_size));
  golden.hidden_columns =
      rising(root.at("hidden_columns"), static_cast<size_t>(golden.hidden_size));
  for (const JsonCursor& cursor : root.at("cases").elements()) {
    golden.cases.push_back(parse_case(cursor, golden));
  }
  if (const auto cursor = root.find("perplexity")) {
    golden.perplexity = parse_perplexity(*cursor, golden);
  }
  return golden;
}

GoldenThresholds parse_thresholds(const Json& json) {
  const JsonCursor root(json, "thresholds");
  root.refuse_unknown_keys({"float32", "bfloat16", "bfloat16_kv"});
  const JsonCursor f32 = root.at("float32");
  const JsonCursor bf16 = root.at("bfloat16");
  const JsonCursor kv = root.at("bfloat16_kv");
  f32.refuse_unknown_keys({"logits_relative_l2", "logits_cosine", "logsumexp_difference",
                           "hidden_relative_l2", "greedy_mismatches", "perplexity_relative"});
  bf16.refuse_unknown_keys({"cosine_p5", "relative_l2_p95", "float32_error_share",
                            "argmax_agreement", "argmax_margin", "continuation_edit_distance"});
  kv.refuse_unknown_keys({"noise_factor", "relative_l2"});
  return {{.logits_relative_l2 = f32.at("logits_relative_l2").number(),
           .logits_cosine = f32.at("logits_cosine").number(),
           .logsumexp_difference = f32.at("logsumexp_difference").number(),
           .hidden_relative_l2 = f32.at("hidden_relative_l2").number(),
           .greedy_mismatches = f32.at("greedy_mismatches").number(),
           .perplexity_relative = f32.at("perplexity_relative").number()},
          {.cosine_p5 = bf16.at("cosine_p5").number(),
           .relative_l2_p95 = bf16.at("relative_l2_p95").number(),
           .float32_error_share = bf16.at("float32_error_share").number(),
           .argmax_agreement = bf16.at("argmax_agreement").number(),
           .argmax_margin = bf16.at("argmax_margin").number(),
           .continuation_edit_distance = bf16.at("continuation_edit_distance").number()},
          {.noise_factor = kv.at("noise_factor").number(),
           .relative_l2 = kv.at("relative_l2").number()}};
}

}  // namespace trtmc
