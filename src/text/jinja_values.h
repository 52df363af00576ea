// The values of a template, with the types and the semantics of Python's. Cheap to copy: what is
// large is shared, and it never changes (only namespaces, loops and iterators do).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja_limits.h"

namespace trtmc::jinja {

class Interpreter;
class Value;
struct Arguments;

struct String {
  std::string text;  // UTF-8, always valid.
  bool ascii;        // One byte is one code point.
  bool markup;       // Made by `safe` or `escape`: markupsafe's Markup.
};

struct None {
  bool operator==(const None&) const = default;
};

// An integer outside int64 as its decimal digits: kept, compared and printed, not calculated with.
struct BigInteger {
  std::string digits;
};

// What a missing name or attribute evaluates to.
struct Undefined {
  std::string name;
  std::string_view owner;  // The type that lacks it; empty for a variable.
  std::string hint;        // If not empty, this is the message.

  // What using it says.
  std::string message() const;
};

// How large a value is when all that it holds is walked through. What is held twice counts twice,
// so the weight is what a comparison or a repr() costs, in the units of Meter; it saturates.
struct Extent {
  int depth = 0;
  uint64_t weight = 1;
  // Takes in what a container holds. Throws a Failure if it gets nested too deeply.
  void add(const Extent& part);
};

// The items of a list, a tuple or a view of a dict.
struct Sequence {
  enum class Kind { kList, kTuple, kDictKeys, kDictValues, kDictItems };
  Kind kind;
  std::vector<Value> items;
  Extent extent;
  bool is_group = false;  // A tuple of groupby, whose items have names: grouper and list.
};

struct Range {
  int64_t start, stop, step;
  int64_t size() const;
  int64_t at(int64_t index) const { return start + index * step; }
  bool contains(int64_t value) const;
};

// What Python calls a generator: its items can be had once. They were made when it was, but what
// went wrong after the last of them shows only when that is asked for, as a generator would.
struct Iterator {
  std::vector<Value> items;
  size_t next;
  Extent extent;
  std::string_view type_name;
  std::optional<Failure> failure;
};

// In the order of insertion. Keys are hashable values.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  Dict();
  ~Dict();
  Dict(Dict&&) noexcept;
  Dict(const Dict&) = delete;
  Dict& operator=(const Dict&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  // An equal key keeps its place and gets the new value.
  void set(Value key, Value value);
  void clear();
  const Extent& extent() const { return extent_; }

 private:
  struct Index;

  std::optional<size_t> position(size_t hash, const Value& key) const;

  std::vector<Entry> entries_;
  std::unique_ptr<Index> index_;  // Of large dicts only.
  Extent extent_{1, 1};
};

// Functions, methods, macros, loops, cyclers: anything with behaviour of its own.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  // As Python prints it.
  virtual std::string repr() const = 0;
  virtual bool callable() const { return false; }
  // Throws a Failure unless callable().
  virtual Value call(Interpreter& interpreter, const Arguments& arguments);
  // Null if there is no such attribute.
  virtual std::optional<Value> attribute(Interpreter& interpreter, std::string_view name);
  virtual Extent extent() const { return {}; }
};

// jinja2.utils.Namespace: the one thing that a template can assign to.
struct Namespace {
  Dict attributes;
};

class Value {
 public:
  using StringPtr = std::shared_ptr<const String>;
  using UndefinedPtr = std::shared_ptr<const Undefined>;
  using BigIntegerPtr = std::shared_ptr<const BigInteger>;
  using SequencePtr = std::shared_ptr<const Sequence>;
  using DictPtr = std::shared_ptr<const Dict>;
  using RangePtr = std::shared_ptr<const Range>;
  using IteratorPtr = std::shared_ptr<Iterator>;
  using NamespacePtr = std::shared_ptr<Namespace>;
  using ObjectPtr = std::shared_ptr<Object>;

  Value() = default;  // Unset: a variable without a value, which no expression ever yields.
  Value(None value) : data_(value) {}                         // NOLINT(google-explicit-constructor)
  Value(bool value) : data_(value) {}                         // NOLINT(google-explicit-constructor)
  Value(int64_t value) : data_(value) {}                      // NOLINT(google-explicit-constructor)
  Value(double value) : data_(value) {}                       // NOLINT(google-explicit-constructor)
  Value(std::string text, bool markup = false);               // NOLINT(google-explicit-constructor)
  Value(std::string_view text) : Value(std::string(text)) {}  // NOLINT
  Value(const char* text) : Value(std::string(text)) {}       // NOLINT
  Value(StringPtr value) : data_(std::move(value)) {}         // NOLINT
  Value(DictPtr value) : data_(std::move(value)) {}           // NOLINT
  Value(Dict value);                                          // NOLINT
  Value(Range value);                                         // NOLINT
  Value(NamespacePtr value) : data_(std::move(value)) {}      // NOLINT
  Value(ObjectPtr value) : data_(std::move(value)) {}         // NOLINT

  // Throws a Failure if the result is nested too deeply.
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value sequence(Sequence::Kind kind, std::vector<Value> items);
  static Value group(Value grouper, Value list);
  // An integer beyond int64; the digits may have a minus, but no zeros, in front.
  static Value big_integer(std::string digits);
  static Value iterator(std::vector<Value> items, std::string_view type_name = "generator",
                        std::optional<Failure> failure = std::nullopt);
  static Value undefined(Undefined what);
  static Value from_json(const Json& json);

  bool is_set() const { return data_.index() != 0; }
  bool is_undefined() const { return std::holds_alternative<UndefinedPtr>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }

  // The value if it is of that kind, else null.
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&data_); }
  const BigInteger* big_integer() const { return pointee<BigIntegerPtr>(); }
  const double* real() const { return std::get_if<double>(&data_); }
  const String* string() const { return pointee<StringPtr>(); }
  const Sequence* sequence() const { return pointee<SequencePtr>(); }
  const Sequence* list() const { return sequence_of(Sequence::Kind::kList); }
  const Sequence* tuple() const { return sequence_of(Sequence::Kind::kTuple); }
  const Dict* dict() const { return pointee<DictPtr>(); }
  const Range* range() const { return pointee<RangePtr>(); }
  Iterator* iterator() const { return pointee<IteratorPtr>(); }
  Namespace* name_space() const { return pointee<NamespacePtr>(); }
  Object* object() const { return pointee<ObjectPtr>(); }
  const Undefined* undefined() const { return pointee<UndefinedPtr>(); }

  // An int or a bool, which Python lets count as one.
  std::optional<int64_t> as_integer() const;
  // As an int or a float (rounded if it must be).
  std::optional<double> as_real() const;

  // "str", "int", "NoneType", …: the name of the Python type.
  std::string_view type_name() const;
  Extent extent() const;
  // Python's `is`.
  bool same_as(const Value& other) const;

 private:
  template <typename Pointer>
  auto pointee() const -> decltype(std::declval<Pointer>().get()) {
    const Pointer* pointer = std::get_if<Pointer>(&data_);
    return pointer ? pointer->get() : nullptr;
  }
  const Sequence* sequence_of(Sequence::Kind kind) const {
    const Sequence* items = sequence();
    return items && items->kind == kind ? items : nullptr;
  }

  std::variant<std::monostate, UndefinedPtr, None, bool, int64_t, BigIntegerPtr, double, StringPtr,
               SequencePtr, DictPtr, RangePtr, IteratorPtr, NamespacePtr, ObjectPtr>
      data_;
};

// Python's bool(value).
bool truthy(const Value& value);

// Python's == and hash(). Both stay within kMaxValueDepth. hash() throws a Failure for a list or a
// dict.
bool equal(const Value& left, const Value& right);
size_t hash(const Value& value);

// -1, 0 or 1 as Python orders them; throws a Failure where Python's < does not apply. `symbol` is
// the operator as the message shows it. NaN is unordered: 2.
int compare(const Value& left, const Value& right, std::string_view symbol);

// int(text, base) of Python; nothing if the text is no integer.
std::optional<Value> parse_any_integer(std::string_view text, int64_t base);

// The values that iterating yields, as Python's iter(): a list's items, a dict's keys, a string's
// code points, nothing of an undefined. Exhausts an iterator. Throws a Failure for what can't be
// iterated.
std::vector<Value> iterate(const Value& value);

}  // namespace trtmc::jinja
