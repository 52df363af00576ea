#include "text/jinja_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <unordered_map>

#include "base/utf8.h"
#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

// Dicts up to this size are searched, larger ones get an index.
constexpr size_t kSearchedEntries = 12;

Extent extent_of(const std::vector<Value>& items) {
  Extent extent{1, 1};
  for (const Value& item : items) extent.add(item.extent());
  return extent;
}

// Whoever fills a Json by hand may have put anything into it.
Value utf8_string(const std::string& text) {
  if (!is_ascii(text) && find_invalid_utf8(text)) {
    fail(fmt::format("the string \"{}\" is not UTF-8", replace_invalid_utf8(text.substr(0, 80))));
  }
  return text;
}

}  // namespace

Error located(const Failure& failure, Position position) {
  return {failure.code,
          fmt::format("line {}, column {}: {}", position.line, position.column, failure.message)};
}

std::string Undefined::message() const {
  if (!hint.empty()) return hint;
  if (owner.empty()) return fmt::format("'{}' is undefined", name);
  return fmt::format("a value of type {} has no '{}'", owner, name);
}

void Extent::add(const Extent& part) {
  if (part.depth >= kMaxValueDepth) fail_limit("a value of the template is nested too deeply");
  depth = std::max(depth, part.depth + 1);
  weight = part.weight > UINT64_MAX - weight ? UINT64_MAX : weight + part.weight;
}

int64_t Range::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

bool Range::contains(int64_t value) const {
  if (step > 0 ? (value < start || value >= stop) : (value > start || value <= stop)) return false;
  return (value - start) % step == 0;
}

struct Dict::Index {
  std::unordered_multimap<size_t, size_t> positions;  // Hash -> place in entries_.
};

Dict::Dict() = default;
Dict::~Dict() = default;
Dict::Dict(Dict&&) noexcept = default;

size_t Dict::size() const { return entries_.size(); }

std::optional<size_t> Dict::position(size_t key_hash, const Value& key) const {
  if (!index_) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equal(entries_[i].first, key)) return i;
    }
    return std::nullopt;
  }
  const auto [first, last] = index_->positions.equal_range(key_hash);
  for (auto it = first; it != last; ++it) {
    if (equal(entries_[it->second].first, key)) return it->second;
  }
  return std::nullopt;
}

const Value* Dict::find(const Value& key) const {
  const auto found = position(hash(key), key);
  return found ? &entries_[*found].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (index_) return find(Value(key));
  for (const auto& [name, value] : entries_) {
    const String* text = name.string();
    if (text && text->text == key) return &value;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  const size_t key_hash = hash(key);
  extent_.add(key.extent());
  extent_.add(value.extent());
  if (const auto found = position(key_hash, key)) {
    entries_[*found].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (index_) {
    index_->positions.emplace(key_hash, entries_.size() - 1);
  } else if (entries_.size() > kSearchedEntries) {
    index_ = std::make_unique<Index>();
    for (size_t i = 0; i < entries_.size(); ++i) {
      index_->positions.emplace(hash(entries_[i].first), i);
    }
  }
}

void Dict::clear() {
  entries_.clear();
  index_.reset();
}

Value Object::call(Interpreter&, const Arguments&) {
  fail(fmt::format("'{}' object is not callable", type_name()));
}

std::optional<Value> Object::attribute(Interpreter&, std::string_view) { return std::nullopt; }

Value::Value(std::string text, bool markup) {
  const bool ascii = is_ascii(text);
  data_ = std::make_shared<const String>(String{std::move(text), ascii, markup});
}

Value::Value(Dict value) : data_(std::make_shared<const Dict>(std::move(value))) {}
Value::Value(Range value) : data_(std::make_shared<const Range>(value)) {}

Value Value::list(std::vector<Value> items) {
  return sequence(Sequence::Kind::kList, std::move(items));
}

Value Value::tuple(std::vector<Value> items) {
  return sequence(Sequence::Kind::kTuple, std::move(items));
}

Value Value::sequence(Sequence::Kind kind, std::vector<Value> items) {
  const Extent extent = extent_of(items);
  Value result;
  result.data_ = std::make_shared<const Sequence>(Sequence{kind, std::move(items), extent, false});
  return result;
}

Value Value::group(Value grouper, Value list) {
  std::vector<Value> items = {std::move(grouper), std::move(list)};
  const Extent extent = extent_of(items);
  Value result;
  result.data_ = std::make_shared<const Sequence>(
      Sequence{Sequence::Kind::kTuple, std::move(items), extent, true});
  return result;
}

Value Value::big_integer(std::string digits) {
  Value result;
  result.data_ = std::make_shared<const BigInteger>(BigInteger{std::move(digits)});
  return result;
}

Value Value::iterator(std::vector<Value> items, std::string_view type_name,
                      std::optional<Failure> failure) {
  const Extent extent = extent_of(items);
  Value result;
  result.data_ = std::make_shared<Iterator>(
      Iterator{std::move(items), 0, extent, type_name, std::move(failure)});
  return result;
}

Value Value::undefined(Undefined what) {
  Value result;
  result.data_ = std::make_shared<const Undefined>(std::move(what));
  return result;
}

Value Value::from_json(const Json& json) {
  if (const bool* boolean = json.boolean()) return *boolean;
  if (const int64_t* integer = json.integer()) return *integer;
  if (const double* real = json.real()) return *real;
  if (const std::string* text = json.string()) return utf8_string(*text);
  if (const Json::BigInteger* big = json.big_integer()) return big_integer(big->digits);
  if (const Json::Array* array = json.array()) {
    std::vector<Value> items;
    items.reserve(array->size());
    for (const Json& item : *array) items.push_back(from_json(item));
    return list(std::move(items));
  }
  if (const Json::Object* object = json.object()) {
    Dict dict;
    for (const auto& [key, value] : *object) dict.set(utf8_string(key), from_json(value));
    return dict;
  }
  return None{};
}

std::optional<int64_t> Value::as_integer() const {
  if (const bool* value = boolean()) return *value ? 1 : 0;
  if (const int64_t* value = integer()) return *value;
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (const double* value = real()) return *value;
  if (const auto value = as_integer()) return static_cast<double>(*value);
  if (const BigInteger* big = big_integer()) return parse_float(big->digits);
  return std::nullopt;
}

std::string_view Value::type_name() const {
  static constexpr std::string_view kNames[] = {"unset", "Undefined", "NoneType",  "bool", "int",
                                                "int",   "float",     "str",       "",     "dict",
                                                "range", "iterator",  "Namespace", ""};
  static constexpr std::string_view kSequences[] = {"list", "tuple", "dict_keys", "dict_values",
                                                    "dict_items"};
  if (const Sequence* items = sequence()) return kSequences[static_cast<size_t>(items->kind)];
  if (const Object* behaviour = object()) return behaviour->type_name();
  if (const Iterator* items = iterator()) return items->type_name;
  if (const String* text = string(); text && text->markup) return "Markup";
  return kNames[data_.index()];
}

Extent Value::extent() const {
  if (const String* text = string()) return {0, 1 + text->text.size() / 64};
  if (const Sequence* items = sequence()) return items->extent;
  if (const Dict* entries = dict()) return entries->extent();
  if (const Iterator* items = iterator()) return items->extent;
  if (const Object* behaviour = object()) return behaviour->extent();
  if (const BigInteger* big = big_integer()) return {0, 1 + big->digits.size() / 64};
  return {};
}

bool Value::same_as(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (const int64_t* value = integer()) return *value == *other.integer();
  if (const double* value = real()) return *value == *other.real();
  if (const String* text = string()) {
    return text == other.string() || (text->text.size() <= 1 && text->text == other.string()->text);
  }
  return data_ == other.data_;
}

bool truthy(const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean;
  if (const int64_t* integer = value.integer()) return *integer != 0;
  if (const double* real = value.real()) return *real != 0;
  if (const String* text = value.string()) return !text->text.empty();
  if (const Sequence* items = value.sequence()) return !items->items.empty();
  if (const Dict* dict = value.dict()) return dict->size() != 0;
  if (const Range* range = value.range()) return range->size() != 0;
  return !value.is_none() && !value.is_undefined() && value.is_set();
}

std::vector<Value> iterate(const Value& value) {
  if (const Sequence* items = value.sequence()) return items->items;
  if (Iterator* items = value.iterator()) {
    std::vector<Value> rest(items->items.begin() + static_cast<std::ptrdiff_t>(items->next),
                            items->items.end());
    items->next = items->items.size();
    if (items->failure) throw *items->failure;
    return rest;
  }
  std::vector<Value> result;
  if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries()) result.push_back(entry.first);
  } else if (const Range* range = value.range()) {
    for (int64_t i = 0; i < range->size(); ++i) result.emplace_back(range->at(i));
  } else if (const String* text = value.string()) {
    for (const std::string_view character : code_points(text->text)) {
      result.emplace_back(character);  // Of a Markup too these are plain.
    }
  } else if (!value.is_undefined()) {
    fail(fmt::format("'{}' object is not iterable", value.type_name()));
  }
  return result;
}

}  // namespace trtmc::jinja
