#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"

namespace trtmc {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // The limit of the format's own reader.
constexpr int kMaxHeaderDepth = 4;
constexpr std::string_view kMetadataKey = "__metadata__";

// Every type of the format, with its size in bits.
constexpr std::pair<std::string_view, uint64_t> kDTypeBits[] = {
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64}};

[[noreturn]] void corrupt(std::string_view what) {
  throw Error(ErrorCode::kCorrupt, std::string(what),
              "the download may be incomplete; compare its size with the published one");
}

// A claim of the header: where it stands, and a complaint in its name.
[[noreturn]] void corrupt(std::string_view tensor, std::string_view what) {
  corrupt(fmt::format("tensor \"{}\": {}", tensor, what));
}

uint64_t read_header_length(std::span<const std::byte> file) {
  if (file.size() < 8) corrupt(fmt::format("{} bytes, too few for a header", file.size()));
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(file[i]);
  if (length > kMaxHeaderBytes)
    corrupt(fmt::format("a header of {} bytes, at most {} are allowed", length, kMaxHeaderBytes));
  if (length > file.size() - 8) {
    corrupt(fmt::format("a header of {} bytes in a file of {} bytes", length, file.size()));
  }
  return length;
}

Json parse_header(std::string_view text) {
  // The format allows no blanks in front.
  if (!text.starts_with('{')) corrupt("header: not a JSON object");
  try {
    return Json::parse(text, kMaxHeaderDepth, Json::EqualKeys::kRefuse);
  } catch (const Error& error) {
    // What is an argument to the JSON reader is a damaged file here.
    corrupt(fmt::format("header: {}", error.what()));
  }
}

// The elements of `value`, each a whole number from 0 on.
std::vector<uint64_t> read_sizes(std::string_view tensor, std::string_view key, const Json* value) {
  if (value == nullptr || value->array() == nullptr)
    corrupt(tensor, fmt::format("{} is not an array", key));
  std::vector<uint64_t> sizes;
  for (const Json& element : *value->array()) {
    const int64_t* size = element.integer();
    if (size == nullptr || *size < 0)
      corrupt(tensor, fmt::format("{} holds what is not a size", key));
    sizes.push_back(static_cast<uint64_t>(*size));
  }
  return sizes;
}

// The bytes of `shape` elements of that many bits, or nothing if they are too many to count or no
// whole number of bytes.
std::optional<uint64_t> count_bytes(const std::vector<uint64_t>& shape, uint64_t bits) {
  uint64_t total = bits;
  for (const uint64_t size : shape) {
    if (__builtin_mul_overflow(total, size, &total)) return std::nullopt;
  }
  return total % 8 == 0 ? std::optional(total / 8) : std::nullopt;
}

std::optional<uint64_t> dtype_bits(std::string_view dtype) {
  const auto* found = std::find_if(std::begin(kDTypeBits), std::end(kDTypeBits),
                                   [&](const auto& known) { return known.first == dtype; });
  return found == std::end(kDTypeBits) ? std::nullopt : std::optional(found->second);
}

SafetensorsEntry read_entry(const std::string& name, const Json& value,
                            std::span<const std::byte> data) {
  const Json* dtype = value.find("dtype");
  if (dtype == nullptr || dtype->string() == nullptr) corrupt(name, "dtype is not a string");
  const std::vector<uint64_t> shape = read_sizes(name, "shape", value.find("shape"));
  const std::vector<uint64_t> range = read_sizes(name, "data_offsets", value.find("data_offsets"));
  if (range.size() != 2) corrupt(name, "data_offsets are not two numbers");
  const uint64_t begin = range[0];
  const uint64_t end = range[1];
  if (begin > end || end > data.size()) {
    corrupt(name, fmt::format("bytes {} to {} of {} bytes of data", begin, end, data.size()));
  }
  SafetensorsEntry entry{*dtype->string(), Shape(shape.begin(), shape.end()),
                         data.subspan(begin, end - begin)};
  // The size of an unknown type can't be told; such a tensor is refused when it is asked for.
  if (const auto bits = dtype_bits(entry.dtype)) {
    const auto needed = count_bytes(shape, *bits);
    if (needed != end - begin) {
      corrupt(name,
              fmt::format("{} bytes, but {} of {} needs {}", end - begin, to_string(entry.shape),
                          entry.dtype, needed ? fmt::to_string(*needed) : "what no file can hold"));
    }
  }
  return entry;
}

void check_metadata(const Json& metadata) {
  const Json::Object* members = metadata.object();
  const bool strings =
      members != nullptr && std::all_of(members->begin(), members->end(), [](const auto& member) {
        return member.second.string() != nullptr;
      });
  if (!strings) corrupt("header: __metadata__ is not an object of strings");
}

// Every byte must belong to exactly one tensor.
void check_coverage(const SafetensorsEntries& entries, std::span<const std::byte> data) {
  std::vector<std::pair<std::span<const std::byte>, std::string_view>> ranges;
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.bytes, name);
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.data(), a.first.size()) < std::pair(b.first.data(), b.first.size());
  });
  const std::byte* expected = data.data();
  for (const auto& [bytes, name] : ranges) {
    if (bytes.data() != expected) {
      corrupt(name, fmt::format("starts at byte {} of the data, where {} was expected",
                                bytes.data() - data.data(), expected - data.data()));
    }
    expected += bytes.size();
  }
  if (expected != data.data() + data.size()) {
    corrupt(fmt::format("{} bytes of data, but the tensors end at {}", data.size(),
                        expected - data.data()));
  }
}

}  // namespace

SafetensorsEntries parse_safetensors(std::span<const std::byte> file) {
  const uint64_t header_bytes = read_header_length(file);
  const std::span<const std::byte> data = file.subspan(8 + header_bytes);
  const Json header = parse_header(as_text(file.subspan(8, header_bytes)));
  SafetensorsEntries entries;
  for (const auto& [name, value] : *header.object()) {
    if (name == kMetadataKey) {
      check_metadata(value);
    } else {
      entries.emplace(name, read_entry(name, value, data));
    }
  }
  check_coverage(entries, data);
  return entries;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path), entries_(with_context(path.filename().string(), [&] {
        return parse_safetensors(file_.bytes());
      })) {}

CheckpointTensor SafetensorsFile::tensor(std::string_view name) const {
  const auto found = entries_.find(name);
  TRTMC_CHECK(found != entries_.end(), "a tensor of this file was asked for");
  const SafetensorsEntry& entry = found->second;
  const auto view = [&](DType dtype) {
    return CheckpointTensor{
        .dtype = dtype, .shape = entry.shape, .encoding = entry.dtype, .bytes = entry.bytes};
  };
  if (entry.dtype == "F32") return view(DType::kF32);
  if (entry.dtype == "F16") return view(DType::kF16);
  if (entry.dtype == "BF16") return view(DType::kBF16);
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: tensor \"{}\" is of type {}, expected BF16, F16 or F32",
                          path().filename().string(), name, entry.dtype),
              "build from the unquantised checkpoint in one of those types");
}

void SafetensorsFile::release(std::span<const std::byte> part) const {
  if (file_.contains(part)) file_.release(part);
}

}  // namespace trtmc
