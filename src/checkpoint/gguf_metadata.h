// The keys and values at the head of a GGUF file, each checked when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trtmc {

enum class GgufValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

// Elements that the parser has found to lie within `bytes`; a string is its u64 length and its
// bytes.
struct GgufArray {
  GgufValueType type;  // Never kArray.
  uint64_t count;
  std::span<const std::byte> bytes;
};

// An integer above int64 is kept as a double.
using GgufValue = std::variant<bool, int64_t, double, std::string_view, GgufArray>;

// Borrows the file. Every getter throws kCorrupt naming the key if the value is of another kind, a
// text is not UTF-8, a number is out of range or an array has more than 2^22 elements; the finders
// give nothing for a missing key.
class GgufMetadata {
 public:
  // False if the key is there already.
  bool add(std::string_view key, GgufValue value) { return values_.emplace(key, value).second; }

  bool holds_flag(std::string_view key) const;  // Whether the key is there and its value a flag.
  std::vector<std::string_view> keys() const;   // Sorted.

  std::optional<int64_t> find_integer(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> find_number(std::string_view key) const;  // An integer counts too.
  std::optional<bool> find_flag(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;
  std::optional<std::vector<std::string_view>> find_texts(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_integers(std::string_view key) const;

  // These throw kCorrupt for a missing key too.
  int64_t integer(std::string_view key, int64_t low, int64_t high) const;
  double number(std::string_view key) const;
  std::string_view text(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;

  std::map<std::string_view, GgufValue, std::less<>> values_;
};

}  // namespace trtmc
