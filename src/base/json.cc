#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

// Objects up to this size are searched, larger ones get an index while they are read.
constexpr size_t kSearchedMembers = 16;

// Builds the tree from the events of nlohmann's reader, which checks syntax and UTF-8.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(int max_depth, Json::EqualKeys equal_keys)
      : max_depth_(static_cast<size_t>(max_depth)), equal_keys_(equal_keys) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return put(uint64_t{value}); }
  bool number_float(number_float_t value, const string_t& digits) override {
    const bool integer = digits.find_first_of(".eE") == std::string::npos;
    return put(integer ? Json(Json::BigInteger{digits}) : Json(value));
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json(Json::Object())); }
  bool start_array(size_t) override { return open(Json(Json::Array())); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    const std::string_view text = e.what();
    const size_t colon = text.rfind("; last read");
    const size_t start = text.find(": syntax error ");
    std::string what = "not valid JSON";
    if (text.find("number overflow") != text.npos) what = "a number beyond 1.8e308";
    if (start != std::string_view::npos) {
      what += fmt::format(
          ": {}", text.substr(start + 15, colon == std::string_view::npos ? std::string_view::npos
                                                                          : colon - start - 15));
    }
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("byte {}: {}", position == 0 ? 0 : position - 1, replace_invalid_utf8(what)));
  }

 private:
  struct Open {
    Json* value;
    std::string key;
    std::unordered_map<std::string, size_t, TextHash> index;  // Of a large object's members.
  };

  Json& slot(Open& object) {
    Json::Object& members = *object.value->object();
    if (members.size() > kSearchedMembers && object.index.empty()) {
      for (size_t i = 0; i < members.size(); ++i) object.index.emplace(members[i].first, i);
    }
    if (!object.index.empty()) {
      const auto [found, added] = object.index.emplace(object.key, members.size());
      if (!added) return again(object.key, members[found->second].second);
    } else if (const Json* old = object.value->find(object.key)) {
      return again(object.key, const_cast<Json&>(*old));
    }
    return members.emplace_back(std::move(object.key), Json()).second;
  }

  Json& again(std::string_view key, Json& old) const {
    if (equal_keys_ == Json::EqualKeys::kLastWins) return old;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the key \"{}\" stands twice", key));
  }

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (Json::Array* array = open_.back().value->array())
      return array->emplace_back(std::move(value));
    return slot(open_.back()) = std::move(value);
  }

  bool put(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() >= max_depth_) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("JSON nested deeper than {} levels", max_depth_));
    }
    // Addresses stay good: a parent gets no further element while its child is open.
    Json& placed = place(std::move(container));
    open_.push_back({&placed, {}, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  size_t max_depth_;
  Json::EqualKeys equal_keys_;
  Json root_;
  std::vector<Open> open_;
};

void append_quoted(std::string& out, std::string_view raw) {
  const std::string fixed = find_invalid_utf8(raw) ? replace_invalid_utf8(raw) : std::string();
  const std::string_view text = fixed.empty() ? raw : fixed;
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";  // JSON has no word for it.
    return;
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string_view digits(text, static_cast<size_t>(end - text));
  out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void write(const Json& value, int level) {
    if (const bool* b = value.boolean()) {
      out_ += *b ? "true" : "false";
    } else if (const int64_t* i = value.integer()) {
      out_ += std::to_string(*i);
    } else if (const Json::BigInteger* big = value.big_integer()) {
      out_ += big->digits;
    } else if (const double* d = value.real()) {
      append_number(out_, *d);
    } else if (const std::string* s = value.string()) {
      append_quoted(out_, *s);
    } else if (const Json::Array* array = value.array()) {
      write_list('[', ']', *array, level, [&](const Json& item) { write(item, level + 1); });
    } else if (const Json::Object* object = value.object()) {
      write_list('{', '}', *object, level, [&](const Json::Member& member) {
        append_quoted(out_, member.first);
        out_ += indent_ < 0 ? ":" : ": ";
        write(member.second, level + 1);
      });
    } else {
      out_ += "null";
    }
  }

 private:
  template <typename Items, typename WriteItem>
  void write_list(char open, char close, const Items& items, int level,
                  const WriteItem& write_item) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ',';
      first = false;
      new_line(level + 1);
      write_item(item);
    }
    if (!first) new_line(level);
    out_ += close;
  }

  void new_line(int level) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * static_cast<size_t>(level), ' ');
  }

  std::string& out_;
  int indent_;
};

}  // namespace

Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(INT64_MAX)) {
    value_ = static_cast<int64_t>(value);
  } else {
    value_ = BigInteger{std::to_string(value)};
  }
}

Json Json::parse(std::string_view text, int max_depth, EqualKeys equal_keys) {
  // The parser takes it for the end, whatever comes behind.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("byte {}: not valid JSON: a zero byte", nul));
  }
  TreeBuilder builder(max_depth, equal_keys);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string_view Json::kind_name() const {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "an integer",
                                                "a number", "a string",  "an array",   "an object"};
  return kNames[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const Member& member) { return member.first == key; });
  return found == members->end() ? nullptr : &found->second;
}

void Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object();
  TRTMC_CHECK(object() != nullptr, "a member is set on an object only");
  if (const Json* old = find(key)) {
    const_cast<Json&>(*old) = std::move(value);
  } else {
    object()->emplace_back(std::string(key), std::move(value));
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  Writer(out, indent).write(*this, 0);
  return out;
}

namespace {

std::string member_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace

FieldError::FieldError(ErrorCode code, std::string field, std::string_view what, std::string hint)
    : Error(code, field.empty() ? std::string(what) : fmt::format("{}: {}", field, what),
            std::move(hint)),
      field_(std::move(field)) {}

FieldError::FieldError(const std::string& message, std::string field)
    : Error(ErrorCode::kInvalidArgument, message), field_(std::move(field)) {}

FieldError FieldError::missing(const std::string& path, std::string_view key) {
  const std::string prefix = path.empty() ? "" : path + ": ";
  return {fmt::format("{}\"{}\" is missing", prefix, key), member_path(path, key)};
}

void JsonCursor::fail(std::string_view what, ErrorCode code) const {
  throw FieldError(code, path_, what);
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  if (json_->object() == nullptr) fail(fmt::format("{}, expected an object", json_->kind_name()));
  const Json* member = json_->find(key);
  if (member == nullptr) return std::nullopt;
  return JsonCursor(*member, member_path(path_, key));
}

std::optional<JsonCursor> JsonCursor::find_set(std::string_view key) const {
  auto member = find(key);
  if (member && member->is_null()) member.reset();
  return member;
}

JsonCursor JsonCursor::at(std::string_view key) const {
  auto member = find(key);
  if (!member) throw FieldError::missing(path_, key);
  return *member;
}

std::vector<JsonCursor> JsonCursor::elements() const {
  const Json::Array* array = json_->array();
  if (array == nullptr) fail(fmt::format("{}, expected an array", json_->kind_name()));
  std::vector<JsonCursor> result;
  result.reserve(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    result.emplace_back((*array)[i], fmt::format("{}[{}]", path_, i));
  }
  return result;
}

std::vector<std::pair<std::string, JsonCursor>> JsonCursor::members() const {
  const Json::Object* object = json_->object();
  if (object == nullptr) fail(fmt::format("{}, expected an object", json_->kind_name()));
  std::vector<std::pair<std::string, JsonCursor>> result;
  result.reserve(object->size());
  for (const auto& [key, value] : *object) {
    result.emplace_back(key,
                        JsonCursor(value, path_.empty() ? key : fmt::format("{}.{}", path_, key)));
  }
  return result;
}

bool JsonCursor::boolean() const {
  if (const bool* value = json_->boolean()) return *value;
  fail(fmt::format("{}, expected true or false", json_->kind_name()));
}

int64_t JsonCursor::integer() const {
  if (const int64_t* value = json_->integer()) return *value;
  fail(fmt::format("{}, expected an integer",
                   json_->big_integer() ? "a number beyond 64 bits" : json_->kind_name()));
}

int64_t JsonCursor::integer_in(int64_t low, int64_t high) const {
  const int64_t value = integer();
  if (value < low || value > high) fail(fmt::format("{}, expected {} to {}", value, low, high));
  return value;
}

double JsonCursor::number() const {
  if (const double* value = json_->real()) return *value;
  if (const int64_t* value = json_->integer()) return static_cast<double>(*value);
  fail(fmt::format("{}, expected a number", json_->kind_name()));
}

const std::string& JsonCursor::string() const {
  if (const std::string* value = json_->string()) return *value;
  fail(fmt::format("{}, expected a string", json_->kind_name()));
}

void JsonCursor::refuse_unknown_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : members()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) value.fail("unknown key");
  }
}

double shortest_double(float value) {
  char text[32];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  double result = value;
  std::from_chars(text, end, result);
  return static_cast<float>(result) == value ? result : double{value};
}

}  // namespace trtmc
