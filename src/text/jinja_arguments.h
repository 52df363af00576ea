// The arguments of a call, and how a built-in binds them to its parameters as Python would.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The values of a built-in's parameters, by their number.
class BoundArguments {
 public:
  // `parameters` are their names; one that starts with a slash can only be given by position. The
  // first `required` must be given. Throws a Failure for too many, unknown, doubled or missing
  // arguments.
  BoundArguments(const Arguments& arguments, std::string_view function,
                 std::initializer_list<std::string_view> parameters, size_t required = 0);

  // Null if the argument was not given.
  const Value* find(size_t parameter) const {
    return values_[parameter].is_set() ? &values_[parameter] : nullptr;
  }
  const Value& at(size_t parameter) const { return values_[parameter]; }
  Value value_or(size_t parameter, const Value& fallback) const {
    return values_[parameter].is_set() ? values_[parameter] : fallback;
  }

  // Throw a Failure that names function and parameter if the argument is of another type.
  const std::string& string(size_t parameter) const;
  std::string string_or(size_t parameter, std::string_view fallback) const;
  int64_t integer(size_t parameter) const;
  int64_t integer_or(size_t parameter, int64_t fallback) const;
  bool truthy_or(size_t parameter, bool fallback) const;

 private:
  std::string_view name(size_t parameter) const;
  [[noreturn]] void fail_type(size_t parameter, std::string_view expected) const;

  std::string_view function_;
  std::initializer_list<std::string_view> parameters_;
  std::vector<Value> values_;
};

}  // namespace trtmc::jinja
