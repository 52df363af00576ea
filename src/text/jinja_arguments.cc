#include "text/jinja_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_limits.h"

namespace trtmc::jinja {

BoundArguments::BoundArguments(const Arguments& arguments, std::string_view function,
                               std::initializer_list<std::string_view> parameters, size_t required)
    : function_(function), parameters_(parameters), values_(parameters.size()) {
  if (arguments.positional.size() > parameters.size()) {
    fail(fmt::format("{}() takes at most {} arguments, but {} are given", function,
                     parameters.size(), arguments.positional.size()));
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), values_.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) fail(fmt::format("{}() has no parameter '{}'", function, name));
    Value& slot = values_[static_cast<size_t>(found - parameters.begin())];
    if (slot.is_set()) fail(fmt::format("{}() is given '{}' twice", function, name));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i].is_set()) {
      fail(fmt::format("{}() lacks its argument '{}'", function, name(i)));
    }
  }
}

std::string_view BoundArguments::name(size_t parameter) const {
  const std::string_view name = parameters_.begin()[parameter];
  return name.starts_with('/') ? name.substr(1) : name;
}

const std::string& BoundArguments::string(size_t parameter) const {
  const String* text = values_[parameter].string();
  if (!text) fail_type(parameter, "a string");
  return text->text;
}

std::string BoundArguments::string_or(size_t parameter, std::string_view fallback) const {
  return values_[parameter].is_set() ? string(parameter) : std::string(fallback);
}

int64_t BoundArguments::integer(size_t parameter) const {
  const auto value = values_[parameter].as_integer();
  if (!value) fail_type(parameter, "an integer");
  return *value;
}

int64_t BoundArguments::integer_or(size_t parameter, int64_t fallback) const {
  return values_[parameter].is_set() ? integer(parameter) : fallback;
}

bool BoundArguments::truthy_or(size_t parameter, bool fallback) const {
  return values_[parameter].is_set() ? truthy(values_[parameter]) : fallback;
}

void BoundArguments::fail_type(size_t parameter, std::string_view expected) const {
  if (const Undefined* undefined = values_[parameter].undefined()) fail(undefined->message());
  fail(fmt::format("the argument '{}' of {}() is of type {}, expected {}", name(parameter),
                   function_, values_[parameter].type_name(), expected));
}

}  // namespace trtmc::jinja
