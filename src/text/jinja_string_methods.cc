#include "text/jinja_string_methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_eval.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_predicates.h"
#include "text/jinja_search.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

const std::string& text_of(const Value& self) { return self.string()->text; }

// What a method of a Markup returns is Markup too.
Value same_type(const Value& self, std::string text) {
  return Value(std::move(text), self.string()->markup);
}

// An argument that becomes part of a Markup is escaped.
std::string part_for(const Value& self, const Value& argument, std::string_view text) {
  const bool escaped = self.string()->markup && !(argument.string() && argument.string()->markup);
  return escaped ? escape_html(text) : std::string(text);
}

template <std::string (*convert)(std::string_view)>
Value converted(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "a method of str", {});
  interpreter.meter().spend_text(text_of(self).size());
  interpreter.meter().make_string(text_of(self).size());
  return same_type(self, convert(text_of(self)));
}

template <bool (*holds)(std::string_view)>
Value predicate(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "a method of str", {});
  interpreter.meter().spend_text(text_of(self).size());
  return holds(text_of(self));
}

template <Side side>
Value stripped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "strip", {"/chars"});
  const bool white = !bound.find(0) || bound.at(0).is_none();
  const size_t set_size = white ? 1 : bound.string(0).size();
  interpreter.meter().spend_bytes(text_of(self).size() * (1 + std::min<size_t>(set_size, 4096)));
  if (white) return same_type(self, std::string(strip(text_of(self), side)));
  return same_type(self, std::string(strip(text_of(self), side, bound.string(0))));
}

Value replaced(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "replace", {"/old", "/new", "/count"}, 2);
  const std::string from = part_for(self, bound.at(0), bound.string(0));
  const std::string to = part_for(self, bound.at(1), bound.string(1));
  return replace_in(interpreter.meter(), self, from, to, bound.integer_or(2, -1));
}

Value joined(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "join", {"/iterable"}, 1);
  std::string result;
  bool first = true;
  for (const Value& item : items_of(interpreter.meter(), bound.at(0))) {
    if (!item.string()) {
      fail(fmt::format("join() takes strings, not a value of type {}", item.type_name()));
    }
    if (!first) result += text_of(self);
    first = false;
    interpreter.meter().spend_bytes(text_of(self).size() + item.string()->text.size());
    if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
    result += part_for(self, item, item.string()->text);
  }
  interpreter.meter().make_string(result.size());
  return same_type(self, std::move(result));
}

Value list_of(Interpreter& interpreter, const Value& self,
              const std::vector<std::string_view>& parts) {
  interpreter.meter().make_items(3 * parts.size());
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(same_type(self, std::string(part)));
  return Value::list(std::move(items));
}

using Split = std::vector<std::string_view> (*)(std::string_view, std::optional<std::string_view>,
                                                int64_t);

template <Split cut>
Value split_up(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "split", {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (bound.find(0) && !bound.at(0).is_none()) separator = bound.string(0);
  const size_t size = text_of(self).size();
  interpreter.meter().spend(separator ? size / 64 : size / 8);
  if (cut == Split(rsplit) && separator) {
    interpreter.meter().spend(size / 64 * std::min<size_t>(separator->size(), 1 << 16));
  }
  return list_of(interpreter, self, cut(text_of(self), separator, bound.integer_or(1, -1)));
}

Value split_lines(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "splitlines", {"keepends"});
  interpreter.meter().spend_text(text_of(self).size());
  return list_of(interpreter, self, splitlines(text_of(self), bound.integer_or(0, 0) != 0));
}

// The part of a string that the optional arguments start and end leave, as in str.find; nothing if
// start is behind the string.
struct Window {
  std::string_view text;
  int64_t first;  // The code point it begins at.
};

std::optional<Window> window(Interpreter& interpreter, const Value& self,
                             const BoundArguments& bound) {
  const String& text = *self.string();
  interpreter.meter().spend_bytes(text.text.size());
  if (!bound.find(1) && !bound.find(2)) return Window{text.text, 0};
  const int64_t size = length(self);
  const auto index = [&](size_t parameter, int64_t otherwise) {
    if (!bound.find(parameter) || bound.at(parameter).is_none()) return otherwise;
    const int64_t value = bound.integer(parameter);
    return value < 0 ? std::max<int64_t>(value + size, 0) : value;
  };
  const int64_t first = index(1, 0), last = std::min(index(2, size), size);
  if (first > size || first > last) return std::nullopt;
  const auto offset = [&](int64_t at) { return byte_offset(text.text, static_cast<size_t>(at)); };
  const size_t begin = offset(first);
  return Window{std::string_view(text.text).substr(begin, offset(last) - begin), first};
}

// The code point at which `part` is found, or -1.
int64_t find_in(Interpreter& interpreter, const Value& self, const Arguments& arguments,
                bool from_right) {
  const BoundArguments bound(arguments, "find", {"/sub", "/start", "/end"}, 1);
  const std::string& part = bound.string(0);
  const auto where = window(interpreter, self, bound);
  if (!where) return -1;
  if (from_right) {
    interpreter.meter().spend(where->text.size() / 64 * std::min<size_t>(part.size(), 1 << 16));
  }
  const size_t found = from_right ? where->text.rfind(part) : find_text(where->text, part, 0);
  if (found == std::string_view::npos) return -1;
  return where->first + static_cast<int64_t>(count_code_points(where->text.substr(0, found)));
}

template <bool from_right>
Value found(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return find_in(interpreter, self, arguments, from_right);
}

template <bool from_right>
Value found_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const int64_t index = find_in(interpreter, self, arguments, from_right);
  if (index < 0) fail("substring not found");
  return index;
}

Value counted(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "count", {"/sub", "/start", "/end"}, 1);
  const std::string& part = bound.string(0);
  const auto where = window(interpreter, self, bound);
  return where ? static_cast<int64_t>(count_occurrences(where->text, part)) : int64_t{0};
}

template <bool at_start>
Value bordered(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, at_start ? "startswith" : "endswith",
                             {"/part", "/start", "/end"}, 1);
  const auto where = window(interpreter, self, bound);
  const auto holds = [&](const Value& part) {
    if (!part.string()) {
      if (part.is_undefined()) fail(part.undefined()->message());
      fail(fmt::format("startswith() and endswith() take strings, not a value of type {}",
                       part.type_name()));
    }
    if (!where) return false;
    const std::string& text = part.string()->text;
    return at_start ? where->text.starts_with(text) : where->text.ends_with(text);
  };
  const Sequence* parts = bound.at(0).tuple();
  if (!parts) return holds(bound.at(0));
  interpreter.meter().spend(bound.at(0).extent().weight);
  return std::any_of(parts->items.begin(), parts->items.end(), holds);
}

template <bool at_start>
Value removed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, at_start ? "removeprefix" : "removesuffix", {"/part"}, 1);
  std::string_view text = text_of(self);
  const std::string& part = bound.string(0);
  interpreter.meter().make_string(text.size());
  if (at_start && text.starts_with(part)) text.remove_prefix(part.size());
  if (!at_start && text.ends_with(part)) text.remove_suffix(part.size());
  return same_type(self, std::string(text));
}

// The text between `left` and `right` copies of `fill`.
Value padded(Interpreter& interpreter, const Value& self, int64_t left, int64_t right,
             const std::string& fill) {
  const auto total = static_cast<uint64_t>(left) + static_cast<uint64_t>(right);
  if (total > kMaxStringBytes) fail_limit("a string of the template gets too long");
  interpreter.meter().make_string(text_of(self).size() + total * fill.size());
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += fill;
  result += text_of(self);
  for (int64_t i = 0; i < right; ++i) result += fill;
  return same_type(self, std::move(result));
}

// How many code points the string lacks to `width`. Any width will do, also the smallest.
int64_t missing_to(int64_t width, const Value& self) {
  const int64_t size = length(self);
  return std::max(width, size) - size;
}

enum class Adjust { kLeft, kRight, kCenter };

template <Adjust adjust>
Value adjusted(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "center", {"/width", "/fillchar"}, 1);
  const std::string fill = bound.string_or(1, " ");
  if (count_code_points(fill) != 1) fail("the fill character must be one character");
  const int64_t width = bound.integer(0), missing = missing_to(width, self);
  if (missing == 0 || adjust == Adjust::kLeft) return padded(interpreter, self, 0, missing, fill);
  if (adjust == Adjust::kRight) return padded(interpreter, self, missing, 0, fill);
  const int64_t left = missing / 2 + (missing & width & 1);  // As CPython rounds.
  return padded(interpreter, self, left, missing - left, fill);
}

Value zero_filled(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "zfill", {"/width"}, 1);
  const int64_t missing = missing_to(bound.integer(0), self);
  const std::string& text = text_of(self);
  const bool sign = text.starts_with('+') || text.starts_with('-');
  if (missing == 0 || !sign) return padded(interpreter, self, missing, 0, "0");
  const Value digits = same_type(self, text.substr(1));
  return same_type(self, text[0] + padded(interpreter, digits, missing, 0, "0").string()->text);
}

template <bool from_right>
Value partitioned(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const BoundArguments bound(arguments, "partition", {"/sep"}, 1);
  const std::string_view text = text_of(self), part = bound.string(0);
  if (part.empty()) fail("empty separator");
  interpreter.meter().make_string(text.size());
  if (from_right)
    interpreter.meter().spend(text.size() / 64 * std::min<size_t>(part.size(), 1 << 16));
  const size_t at = from_right ? text.rfind(part) : find_text(text, part, 0);
  const auto piece = [&](std::string_view value) { return same_type(self, std::string(value)); };
  if (at == std::string_view::npos) {
    return from_right ? Value::tuple({piece(""), piece(""), self})
                      : Value::tuple({self, piece(""), piece("")});
  }
  return Value::tuple(
      {piece(text.substr(0, at)), piece(part), piece(text.substr(at + part.size()))});
}

Value formatted(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return format_braces(interpreter, *self.string(), arguments);
}

constexpr Method kStringMethods[] = {
    {"capitalize", converted<capitalize>},
    {"casefold", nullptr},
    {"center", adjusted<Adjust::kCenter>},
    {"count", counted},
    {"encode", nullptr},
    {"endswith", bordered<false>},
    {"expandtabs", nullptr},
    {"find", found<false>},
    {"format", formatted},
    {"format_map", nullptr},
    {"index", found_index<false>},
    {"isalnum", predicate<is_alnum>},
    {"isalpha", predicate<is_alpha>},
    {"isascii", predicate<is_ascii>},
    {"isdecimal", predicate<is_decimal>},
    {"isdigit", predicate<is_digit>},
    {"isidentifier", nullptr},
    {"islower", predicate<is_lower>},
    {"isnumeric", predicate<is_numeric>},
    {"isprintable", predicate<is_printable>},
    {"isspace", predicate<is_space>},
    {"istitle", predicate<is_title>},
    {"isupper", predicate<is_upper>},
    {"join", joined},
    {"ljust", adjusted<Adjust::kLeft>},
    {"lower", converted<lower>},
    {"lstrip", stripped<kLeft>},
    {"maketrans", nullptr},
    {"partition", partitioned<false>},
    {"removeprefix", removed<true>},
    {"removesuffix", removed<false>},
    {"replace", replaced},
    {"rfind", found<true>},
    {"rindex", found_index<true>},
    {"rjust", adjusted<Adjust::kRight>},
    {"rpartition", partitioned<true>},
    {"rsplit", split_up<rsplit>},
    {"rstrip", stripped<kRight>},
    {"split", split_up<split>},
    {"splitlines", split_lines},
    {"startswith", bordered<true>},
    {"strip", stripped<kBoth>},
    {"swapcase", converted<swapcase>},
    {"title", converted<title>},
    {"translate", nullptr},
    {"upper", converted<upper>},
    {"zfill", zero_filled},
};

}  // namespace

std::span<const Method> string_methods() { return kStringMethods; }

Value replace_in(Meter& meter, const Value& self, std::string_view from, std::string_view to,
                 int64_t limit) {
  const std::string& text = self.string()->text;
  meter.spend_bytes(text.size());
  uint64_t count = count_occurrences(text, from);
  if (limit >= 0) count = std::min(count, static_cast<uint64_t>(limit));
  if (!to.empty() && count > kMaxStringBytes / to.size()) {
    fail_limit("a string of the template gets too long");
  }
  meter.make_string(text.size() + count * to.size());
  if (from.empty()) meter.spend(count);
  return Value(replace(text, from, to, limit), self.string()->markup);
}

}  // namespace trtmc::jinja
