// JSON as a tree of values in the order of the text, since prompts and bundles depend on that
// order.
//
// Of Python's json module it keeps: the last of two equal keys wins and stays at the first one's
// place, integers of any size. It refuses NaN, lone surrogates, and nesting deeper than a limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trtmc/values.h"

namespace trtmc {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;
  // An integer outside int64, as its digits.
  struct BigInteger {
    std::string digits;
    bool operator==(const BigInteger&) const = default;
  };

  // A value of each kind; implicit, since a JSON literal reads best without casts.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(uint64_t value);
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(BigInteger value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  enum class EqualKeys { kLastWins, kRefuse };

  // Throws kInvalidArgument naming the byte (or the key that an object has twice, if those are to
  // be refused). `max_depth` bounds the nesting of arrays and objects.
  static Json parse(std::string_view text, int max_depth = 128,
                    EqualKeys equal_keys = EqualKeys::kLastWins);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // The value if it is of that kind, else null.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const BigInteger* big_integer() const { return std::get_if<BigInteger>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }

  // "null", "a boolean", "an integer", "a number", "a string", "an array", "an object".
  std::string_view kind_name() const;

  // The member `key` of an object, or null if there is none or this is no object. Linear in its
  // size.
  const Json* find(std::string_view key) const;
  // Sets the member `key`; this must be null or an object.
  void set(std::string_view key, Json value);

  // Text without spaces, or with `indent` spaces a level and a space after the colon. Strings keep
  // their UTF-8 (invalid bytes become U+FFFD), numbers their shortest form that reads back equal.
  std::string dump(int indent = -1) const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, BigInteger, double, std::string, Array, Object>
      value_;
};

// The double whose shortest decimal form is that of `value`, so that 1e-6f is written 1e-06.
double shortest_double(float value);

// What is wrong with a member of a JSON document that somebody sent.
class FieldError : public Error {
 public:
  // `what` follows the field's path in the message.
  FieldError(ErrorCode code, std::string field, std::string_view what, std::string hint = {});

  // Of the member `key`, which the object at `path` has to have and has not.
  static FieldError missing(const std::string& path, std::string_view key);

  const std::string& field() const { return field_; }  // "messages[0].role"

 private:
  FieldError(const std::string& message, std::string field);

  std::string field_;
};

// A place in a JSON document that knows its path, so that every complaint names it:
// "rope_scaling.factor: a string, expected a number". Borrows the document.
class JsonCursor {
 public:
  // `name` begins every path; it may be empty.
  explicit JsonCursor(const Json& root, std::string name = {})
      : json_(&root), path_(std::move(name)) {}

  const Json& json() const { return *json_; }
  const std::string& path() const { return path_; }
  bool is_null() const { return json_->is_null(); }

  JsonCursor at(std::string_view key) const;  // Throws if it is missing.
  std::optional<JsonCursor> find(
      std::string_view key) const;  // Nothing if missing; null is a value.
  std::optional<JsonCursor> find_set(std::string_view key) const;   // Nothing if missing or null.
  std::vector<JsonCursor> elements() const;                         // Of an array.
  std::vector<std::pair<std::string, JsonCursor>> members() const;  // Of an object.

  bool boolean() const;
  int64_t integer() const;
  // An integer within [low, high].
  int64_t integer_in(int64_t low, int64_t high) const;
  double number() const;  // An integer counts too.
  const std::string& string() const;

  // Throws kInvalidArgument unless this object's keys are all among `known`.
  void refuse_unknown_keys(std::initializer_list<std::string_view> known) const;

  // Throws a FieldError "<path>: <what>".
  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::kInvalidArgument) const;

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace trtmc
