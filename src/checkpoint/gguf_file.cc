#include "checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf_cursor.h"

namespace trtmc {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = 1 << 20;
constexpr uint32_t kMaxDimensions = 4;
// The least that one of each takes in the file: what a count is held against before it is believed.
constexpr uint64_t kLeastPairBytes = 8 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

[[noreturn]] void corrupt(std::string_view what) {
  throw Error(ErrorCode::kCorrupt, std::string(what),
              "the download may be incomplete; compare its size with the published one");
}

[[noreturn]] void corrupt(std::string_view tensor, std::string_view what) {
  corrupt(fmt::format("tensor \"{}\": {}", tensor, what));
}

// Where a tensor lies, as the header has it.
struct TensorEntry {
  std::string name;
  GgufTensor tensor;
  uint64_t offset;  // From the data's begin.
  uint64_t bytes;
};

struct Counts {
  uint64_t tensors, pairs;
};

Counts read_preamble(GgufCursor& cursor) {
  if (cursor.remaining() < kMagic.size()) corrupt("too short for a GGUF file");
  std::string magic;
  for (size_t i = 0; i < kMagic.size(); ++i) magic += cursor.number<char>();
  if (magic != kMagic) corrupt("not a GGUF file: it does not begin with \"GGUF\"");
  const auto version = cursor.number<uint32_t>();
  if (version != 0 && (version & 0xFFFF) == 0) {
    throw Error(ErrorCode::kUnsupported, "a big-endian GGUF file, expected a little-endian one");
  }
  if (version != 2 && version != 3) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("version {} of the GGUF format, expected 2 or 3", version));
  }
  const auto tensors = cursor.number<uint64_t>();
  const auto pairs = cursor.number<uint64_t>();
  if (tensors > cursor.remaining() / kLeastTensorBytes) {
    corrupt(fmt::format("{} tensors in a file of {} bytes", tensors, cursor.remaining()));
  }
  if (pairs > cursor.remaining() / kLeastPairBytes) {
    corrupt(fmt::format("{} keys in a file of {} bytes", pairs, cursor.remaining()));
  }
  return {tensors, pairs};
}

std::string_view read_name(GgufCursor& cursor, std::string_view what) {
  const size_t at = cursor.position();
  const std::string_view name = cursor.string();
  if (name.empty()) corrupt(fmt::format("byte {}: {} without a name", at, what));
  if (find_invalid_utf8(name)) corrupt(fmt::format("byte {}: {}'s name is not UTF-8", at, what));
  return name;
}

GgufMetadata read_metadata(GgufCursor& cursor, uint64_t count) {
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = read_name(cursor, "a key");
    const GgufValueType type = cursor.type();
    if (!metadata.add(key, cursor.value(type)))
      corrupt(fmt::format("key \"{}\" is there twice", key));
  }
  return metadata;
}

uint64_t read_alignment(const GgufMetadata& metadata) {
  const int64_t alignment =
      metadata.find_integer(kAlignmentKey, 1, kMaxAlignment).value_or(kDefaultAlignment);
  if ((alignment & (alignment - 1)) != 0) {
    corrupt(fmt::format("{} is {}, expected a power of two", kAlignmentKey, alignment));
  }
  return static_cast<uint64_t>(alignment);
}

// Rows first. The file has the row's elements first.
Shape read_shape(GgufCursor& cursor, std::string_view name) {
  const auto dimensions = cursor.number<uint32_t>();
  if (dimensions < 1 || dimensions > kMaxDimensions) {
    corrupt(name, fmt::format("{} dimensions, expected 1 to {}", dimensions, kMaxDimensions));
  }
  Shape shape;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.number<uint64_t>();
    if (size < 1 || size > INT64_MAX) corrupt(name, fmt::format("a dimension of {}", size));
    shape.insert(shape.begin(), static_cast<int64_t>(size));
  }
  return shape;
}

// The bytes of a tensor, or nothing if they are too many to count.
std::optional<uint64_t> count_bytes(const Shape& shape, const GgmlType& type) {
  auto bytes = static_cast<uint64_t>(shape.back() / type.block_elements);
  if (__builtin_mul_overflow(bytes, uint64_t{type.block_bytes}, &bytes)) return std::nullopt;
  // num_elements() must fit too.
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  }
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes)) return std::nullopt;
  }
  return bytes;
}

TensorEntry read_tensor(GgufCursor& cursor, uint64_t alignment) {
  TensorEntry entry{
      .name = std::string(read_name(cursor, "a tensor")), .tensor = {}, .offset = 0, .bytes = 0};
  entry.tensor.shape = read_shape(cursor, entry.name);
  const auto number = cursor.number<uint32_t>();
  entry.offset = cursor.number<uint64_t>();
  entry.tensor.type = find_ggml_type(number);
  if (entry.tensor.type == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("tensor \"{}\" is of type {}, expected one of {}", entry.name,
                            ggml_type_name(number), readable_ggml_types()));
  }
  const GgmlType& type = *entry.tensor.type;
  if (entry.tensor.shape.back() % type.block_elements != 0) {
    corrupt(entry.name, fmt::format("rows of {} elements, but blocks of {} have {}",
                                    entry.tensor.shape.back(), type.name, type.block_elements));
  }
  const auto bytes = count_bytes(entry.tensor.shape, type);
  if (!bytes) {
    corrupt(entry.name,
            fmt::format("a shape of {}, more than any file holds", to_string(entry.tensor.shape)));
  }
  entry.bytes = *bytes;
  if (entry.offset % alignment != 0) {
    corrupt(entry.name, fmt::format("begins at byte {} of the data, expected a multiple of {}",
                                    entry.offset, alignment));
  }
  return entry;
}

// Each tensor within the data, and no byte in two of them.
void check_places(std::vector<TensorEntry>& entries, uint64_t data_bytes) {
  for (const TensorEntry& entry : entries) {
    if (entry.offset > data_bytes || entry.bytes > data_bytes - entry.offset) {
      corrupt(entry.name, fmt::format("{} bytes from byte {} of the data on, which has {}",
                                      entry.bytes, entry.offset, data_bytes));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < entries.size(); ++i) {
    const TensorEntry &before = entries[i - 1], &entry = entries[i];
    if (entry.offset < before.offset + before.bytes) {
      corrupt(entry.name, fmt::format("overlaps tensor \"{}\"", before.name));
    }
  }
}

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> file) {
  GgufCursor cursor(file);
  const Counts counts = read_preamble(cursor);
  GgufContents contents;
  contents.metadata = read_metadata(cursor, counts.pairs);
  const uint64_t alignment = read_alignment(contents.metadata);
  std::vector<TensorEntry> entries;  // Grows with what is read, not with what a count claims.
  for (uint64_t i = 0; i < counts.tensors; ++i) entries.push_back(read_tensor(cursor, alignment));
  const uint64_t padding = (alignment - cursor.position() % alignment) % alignment;
  const std::span<const std::byte> data =
      file.subspan(cursor.position() + std::min<uint64_t>(padding, cursor.remaining()));
  check_places(entries, data.size());
  for (TensorEntry& entry : entries) {
    entry.tensor.bytes = data.subspan(entry.offset, entry.bytes);
    if (!contents.tensors.emplace(entry.name, std::move(entry.tensor)).second) {
      corrupt(entry.name, "is there twice");
    }
  }
  return contents;
}

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(path),
      contents_(with_context(path.filename().string(), [&] { return parse_gguf(file_.bytes()); })) {
}

void GgufFile::release(std::span<const std::byte> part) const {
  if (file_.contains(part)) file_.release(part);
}

}  // namespace trtmc
