// Which methods there are; the methods of strings are in jinja_string_methods.cc.
#include "text/jinja_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "text/jinja_eval.h"
#include "text/jinja_operators.h"
#include "text/jinja_string_methods.h"

namespace trtmc::jinja {
namespace {

// A method taken as a value: `messages[0].content.upper`.
class BoundMethod : public Object {
 public:
  BoundMethod(const Method& method, Value self) : method_(method), self_(std::move(self)) {}

  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override {
    return fmt::format("<built-in method {} of {} object>", method_.name, self_.type_name());
  }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return call_method(interpreter, method_, self_, arguments);
  }
  Extent extent() const override {
    Extent extent{1, 1};
    extent.add(self_.extent());
    return extent;
  }

 private:
  const Method& method_;
  Value self_;
};

Value view(Interpreter& interpreter, const Value& self, Sequence::Kind kind) {
  std::vector<Value> items;
  interpreter.meter().make_items(2 * self.dict()->size());
  for (const auto& [key, value] : self.dict()->entries()) {
    if (kind == Sequence::Kind::kDictItems) {
      items.push_back(Value::tuple({key, value}));
    } else {
      items.push_back(kind == Sequence::Kind::kDictKeys ? key : value);
    }
  }
  return Value::sequence(kind, std::move(items));
}

template <Sequence::Kind kind>
Value dict_view(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "a view of a dict", {});
  return view(interpreter, self, kind);
}

Value dict_get(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "get", {"/key", "/default"}, 1);
  interpreter.meter().spend(bound.at(0).extent().weight);
  const Value* found = self.dict()->find(bound.at(0));
  return found ? *found : bound.value_or(1, None{});
}

Value copy(Interpreter&, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "copy", {});
  return self;  // Nothing can change it.
}

Value sequence_count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "count", {"/value"}, 1);
  interpreter.meter().spend(self.extent().weight);
  int64_t count = 0;
  for (const Value& item : self.sequence()->items) {
    if (item.same_as(bound.at(0)) || equal(item, bound.at(0))) ++count;
  }
  return count;
}

Value sequence_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "index", {"/value", "/start", "/stop"}, 1);
  interpreter.meter().spend(self.extent().weight);
  const auto& items = self.sequence()->items;
  const auto size = static_cast<int64_t>(items.size());
  const auto clamped = [&](int64_t index) {
    return std::clamp(index < 0 ? index + size : index, int64_t{0}, size);
  };
  const int64_t stop = clamped(bound.integer_or(2, size));
  for (int64_t i = clamped(bound.integer_or(1, 0)); i < stop; ++i) {
    const Value& item = items[static_cast<size_t>(i)];
    if (item.same_as(bound.at(0)) || equal(item, bound.at(0))) return i;
  }
  fail("the value is not in the list");
}

constexpr Method kDictMethods[] = {
    {"clear", nullptr, false},
    {"copy", copy},
    {"fromkeys", nullptr},
    {"get", dict_get},
    {"items", dict_view<Sequence::Kind::kDictItems>},
    {"keys", dict_view<Sequence::Kind::kDictKeys>},
    {"pop", nullptr, false},
    {"popitem", nullptr, false},
    {"setdefault", nullptr, false},
    {"update", nullptr, false},
    {"values", dict_view<Sequence::Kind::kDictValues>},
};

constexpr Method kListMethods[] = {
    {"append", nullptr, false},  {"clear", nullptr, false},  {"copy", copy},
    {"count", sequence_count},   {"extend", nullptr, false}, {"index", sequence_index},
    {"insert", nullptr, false},  {"pop", nullptr, false},    {"remove", nullptr, false},
    {"reverse", nullptr, false}, {"sort", nullptr, false},
};

Value range_count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "count", {"/value"}, 1);
  return int64_t{contains(interpreter.meter(), self, bound.at(0)) ? 1 : 0};
}

Value range_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "index", {"/value"}, 1);
  if (!contains(interpreter.meter(), self, bound.at(0))) fail("the value is not in the range");
  const auto integer = bound.at(0).as_integer();
  const int64_t value = integer ? *integer : static_cast<int64_t>(*bound.at(0).real());
  return (value - self.range()->start) / self.range()->step;
}

constexpr Method kRangeMethods[] = {{"count", range_count}, {"index", range_index}};

constexpr Method kTupleMethods[] = {{"count", sequence_count}, {"index", sequence_index}};

std::span<const Method> methods_of(const Value& self) {
  if (self.string()) return string_methods();
  if (self.dict()) return kDictMethods;
  if (self.list()) return kListMethods;
  if (self.tuple()) return kTupleMethods;
  if (self.range()) return kRangeMethods;
  return {};
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  const auto methods = methods_of(self);
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const Method& method) { return method.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

Value call_method(Interpreter& interpreter, const Method& method, const Value& self,
                  const Arguments& arguments) {
  interpreter.meter().spend(1);
  if (!method.safe) {
    fail(fmt::format("{}.{}() changes its value, which a template may not", self.type_name(),
                     method.name));
  }
  if (!method.call) {
    fail_unsupported(
        fmt::format("the method {}.{}() is not supported", self.type_name(), method.name));
  }
  return method.call(interpreter, self, arguments);
}

Value bind_method(const Method& method, const Value& self) {
  if (!method.safe) {
    return Value::undefined({{}, {}, fmt::format("access to '{}' is unsafe", method.name)});
  }
  return Value::ObjectPtr(std::make_shared<BoundMethod>(method, self));
}

}  // namespace trtmc::jinja
