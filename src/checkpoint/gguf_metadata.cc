#include "checkpoint/gguf_metadata.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf_cursor.h"

namespace trtmc {
namespace {

std::string_view kind_of(const GgufValue& value) {
  constexpr std::string_view kKinds[] = {"a flag", "an integer", "a number", "a text", "an array"};
  return kKinds[value.index()];
}

[[noreturn]] void refuse(std::string_view key, std::string_view what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("key \"{}\": {}", key, what));
}

[[noreturn]] void refuse_kind(std::string_view key, const GgufValue& value,
                              std::string_view expected) {
  refuse(key, fmt::format("{}, expected {}", kind_of(value), expected));
}

std::string_view checked_text(std::string_view key, std::string_view text) {
  if (const auto offset = find_invalid_utf8(text)) {
    refuse(key, fmt::format("byte {} of a text is not UTF-8", *offset));
  }
  return text;
}

// More elements than any vocabulary has tokens or merges would only fill the memory.
constexpr uint64_t kMaxElements = uint64_t{1} << 22;

void check_count(std::string_view key, const GgufArray& array) {
  if (array.count <= kMaxElements) return;
  refuse(key, fmt::format("an array of {}, expected at most {}", array.count, kMaxElements));
}

template <typename T>
T required(std::string_view key, std::optional<T> value) {
  if (!value) throw Error(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing", key));
  return *value;
}

}  // namespace

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> GgufMetadata::keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

bool GgufMetadata::holds_flag(std::string_view key) const {
  const GgufValue* value = find(key);
  return value != nullptr && std::holds_alternative<bool>(*value);
}

std::optional<int64_t> GgufMetadata::find_integer(std::string_view key, int64_t low,
                                                  int64_t high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(value);
  if (integer == nullptr) refuse_kind(key, *value, "an integer");
  if (*integer < low || *integer > high) {
    refuse(key, fmt::format("{}, expected {} to {}", *integer, low, high));
  }
  return *integer;
}

std::optional<double> GgufMetadata::find_number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  const auto* number = std::get_if<double>(value);
  if (number == nullptr) refuse_kind(key, *value, "a number");
  return *number;
}

std::optional<bool> GgufMetadata::find_flag(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) refuse_kind(key, *value, "a flag");
  return *flag;
}

std::optional<std::string_view> GgufMetadata::find_text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr) refuse_kind(key, *value, "a text");
  return checked_text(key, *text);
}

std::optional<std::vector<std::string_view>> GgufMetadata::find_texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufValueType::kString) {
    refuse_kind(key, *value, "an array of texts");
  }
  check_count(key, *array);
  std::vector<std::string_view> texts;
  texts.reserve(array->count);
  GgufCursor cursor(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) texts.push_back(checked_text(key, cursor.string()));
  return texts;
}

std::optional<std::vector<int64_t>> GgufMetadata::find_integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr) refuse_kind(key, *value, "an array of integers");
  check_count(key, *array);
  std::vector<int64_t> integers;
  integers.reserve(array->count);
  GgufCursor cursor(array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    const GgufValue element = cursor.scalar(array->type);
    const auto* integer = std::get_if<int64_t>(&element);
    if (integer == nullptr) refuse(key, "an array of other things than integers");
    integers.push_back(*integer);
  }
  return integers;
}

int64_t GgufMetadata::integer(std::string_view key, int64_t low, int64_t high) const {
  return required(key, find_integer(key, low, high));
}

double GgufMetadata::number(std::string_view key) const { return required(key, find_number(key)); }

std::string_view GgufMetadata::text(std::string_view key) const {
  return required(key, find_text(key));
}

}  // namespace trtmc
