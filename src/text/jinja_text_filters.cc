// Filters from a value to text.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_attribute_path.h"
#include "text/jinja_eval.h"
#include "text/jinja_filter_tables.h"
#include "text/jinja_format.h"
#include "text/jinja_json.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_repr.h"
#include "text/jinja_string_methods.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace trtmc::jinja {
namespace {

// str(value) for what is no string yet; a Markup stays one.
Value soft_string(Interpreter& interpreter, const Value& value) {
  if (value.string()) return value;
  interpreter.meter().spend(value.extent().weight);
  std::string text = to_text(value);
  interpreter.meter().make_string(text.size());
  return text;
}

// A filter that is the string's method of the same name.
Value by_method(Interpreter& interpreter, const Value& value, std::string_view method,
                const Arguments& arguments) {
  const Value text = soft_string(interpreter, value);
  return call_method(interpreter, *find_method(text, method), text, arguments);
}

Value filter_upper(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return by_method(interpreter, value, "upper", arguments);
}

Value filter_lower(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return by_method(interpreter, value, "lower", arguments);
}

Value filter_capitalize(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return by_method(interpreter, value, "capitalize", arguments);
}

Value filter_trim(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "trim", {"chars"});
  return by_method(interpreter, value, "strip", {{bound.value_or(0, None{})}, {}});
}

Value filter_center(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "center", {"width"});
  return by_method(interpreter, value, "center", {{bound.integer_or(0, 80)}, {}});
}

Value filter_string(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "string", {});
  return soft_string(interpreter, value);
}

// Words begin after white space, dashes and opening brackets; the rest of them is lower case.
Value filter_title(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "title", {});
  const Value text = soft_string(interpreter, value);
  const std::string& source = text.string()->text;
  interpreter.meter().spend_text(source.size());
  interpreter.meter().make_string(2 * source.size());
  std::string result;
  size_t word = 0, offset = 0;
  const auto add_word = [&] {
    const std::string_view whole = std::string_view(source).substr(word, offset - word);
    const size_t first = byte_offset(whole, 1);
    result += upper(whole.substr(0, first));
    result += lower(whole.substr(first));
  };
  for (const std::string_view character : code_points(source)) {
    const char32_t c = decode_utf8(character)->value;
    const bool separates = has_property(c, Property::kSpace) || c == '-' || c == '(' || c == '{' ||
                           c == '[' || c == '<';
    if (separates) {
      add_word();
      result += character;
      word = offset + character.size();
    }
    offset += character.size();
  }
  add_word();
  return result;
}

Value filter_replace(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "replace", {"old", "new", "count"}, 2);
  const Value text = soft_string(interpreter, value);
  const Value from = soft_string(interpreter, bound.at(0)),
              to = soft_string(interpreter, bound.at(1));
  const bool all = !bound.find(2) || bound.at(2).is_none();
  return replace_in(interpreter.meter(), Value(text.string()->text), from.string()->text,
                    to.string()->text, all ? -1 : bound.integer(2));
}

Value filter_join(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "join", {"d", "attribute"});
  const std::string separator = to_text(bound.value_or(0, ""));
  const AttributePath path(interpreter, bound.at(1));
  std::string result;
  bool first = true;
  for (const Value& item : items_of(interpreter.meter(), value)) {
    if (!first) result += separator;
    first = false;
    const Value part = soft_string(interpreter, path.of(item));
    interpreter.meter().spend_bytes(separator.size() + part.string()->text.size());
    result += part.string()->text;
    if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
  }
  return result;
}

Value filter_indent(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "indent", {"width", "first", "blank"});
  if (!value.string()) {
    if (const Undefined* undefined = value.undefined()) fail(undefined->message());
    fail(fmt::format("indent() takes a string, not a value of type {}", value.type_name()));
  }
  const Value width = bound.value_or(0, int64_t{4});
  const Value indentation = width.string() ? width : binary(interpreter.meter(), "*", " ", width);
  const std::string& indent = indentation.string()->text;
  const bool blank = bound.truthy_or(2, false);
  const std::string text = value.string()->text + "\n";
  interpreter.meter().spend_text(text.size());
  std::string result;
  bool first = true;
  for (const std::string_view line : splitlines(text, false)) {
    if (!first) result += '\n';
    if (first ? bound.truthy_or(1, false) : blank || !line.empty()) result += indent;
    first = false;
    interpreter.meter().spend_bytes(indent.size() + line.size());
    result += line;
    if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
  }
  return Value(std::move(result), value.string()->markup);
}

Value filter_truncate(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "truncate", {"length", "killwords", "end", "leeway"});
  const int64_t wanted = bound.integer_or(0, 255), leeway = bound.integer_or(3, 5);
  const std::string end = bound.string_or(2, "...");
  const auto end_length = static_cast<int64_t>(count_code_points(end));
  if (wanted < end_length)
    fail(fmt::format("truncate() needs a length of at least {}", end_length));
  if (leeway < 0) fail("truncate() needs a leeway of at least 0");
  if (length(value) <= wanted || length(value) - wanted <= leeway) return value;
  const Value kept = slice(interpreter.meter(), value, Value(), wanted - end_length, Value());
  if (!kept.string()) fail("truncate() takes a string");
  std::string_view text = kept.string()->text;
  if (!bound.truthy_or(1, false)) text = rsplit(text, " ", 1)[0];
  return std::string(text) + end;
}

Value filter_wordcount(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "wordcount", {});
  const Value text = soft_string(interpreter, value);
  interpreter.meter().spend_text(text.string()->text.size());
  int64_t count = 0;
  bool inside = false;
  for (const char32_t c : to_utf32(text.string()->text)) {
    const bool word =
        c == '_' || has_property(c, Property::kAlphabetic) || has_property(c, Property::kNumeric);
    if (word && !inside) ++count;
    inside = word;
  }
  return count;
}

Value filter_escape(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "escape", {});
  Value text = soft_string(interpreter, value);
  if (text.string()->markup) return text;
  interpreter.meter().spend_text(text.string()->text.size());
  interpreter.meter().make_string(5 * text.string()->text.size());
  return Value(escape_html(text.string()->text), true);
}

Value filter_safe(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "safe", {});
  return Value(soft_string(interpreter, value).string()->text, true);
}

Value filter_format(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Value text = soft_string(interpreter, value);
  if (arguments.named.empty()) {
    return format_percent(interpreter.meter(), *text.string(), Value::tuple(arguments.positional));
  }
  if (!arguments.positional.empty()) fail("format() takes positional or named arguments, not both");
  Dict named;
  for (const auto& [name, argument] : arguments.named) named.set(name, argument);
  return format_percent(interpreter.meter(), *text.string(), std::move(named));
}

std::optional<std::string> json_indent(Interpreter& interpreter, const Value& indent) {
  if (!indent.is_set() || indent.is_none()) return std::nullopt;
  if (indent.string()) return indent.string()->text;
  return binary(interpreter.meter(), "*", " ", indent).string()->text;
}

Value filter_tojson(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "tojson",
                             {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.truthy_or(0, false);
  style.indent = json_indent(interpreter, bound.at(1));
  style.sort_keys = bound.truthy_or(3, false);
  if (style.indent) style.item_separator = ",";
  if (bound.find(2) && !bound.at(2).is_none()) {
    const std::vector<Value> separators = items_of(interpreter.meter(), bound.at(2));
    if (separators.size() != 2 || !separators[0].string() || !separators[1].string()) {
      fail("tojson() needs two separators, both strings");
    }
    style.item_separator = separators[0].string()->text;
    style.key_separator = separators[1].string()->text;
  }
  return to_json(interpreter.meter(), value, style);
}

// urllib.parse.quote; in a query a space is a plus and a slash is quoted.
std::string url_quoted(std::string_view text, bool in_query) {
  std::string result;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || std::string_view("_.-~").find(c) != std::string_view::npos ||
        (c == '/' && !in_query)) {
      result += c;
    } else if (c == ' ' && in_query) {
      result += '+';
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

Value filter_urlencode(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "urlencode", {});
  Meter& meter = interpreter.meter();
  const auto quoted = [&](const Value& part, bool in_query) {
    const Value text = soft_string(interpreter, part);
    meter.spend_text(text.string()->text.size());
    meter.make_string(3 * text.string()->text.size());
    return url_quoted(text.string()->text, in_query);
  };
  if (value.string() || value.as_real() || value.is_none()) return quoted(value, false);
  const Value pairs =
      value.dict() ? call_method(interpreter, *find_method(value, "items"), value, {}) : value;
  std::string result;
  for (const Value& pair : items_of(meter, pairs)) {
    const std::vector<Value> items = items_of(meter, pair);
    if (items.size() != 2) fail("urlencode() needs pairs");
    if (!result.empty()) result += '&';
    result += quoted(items[0], true) + "=" + quoted(items[1], true);
    if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
  }
  return result;
}

constexpr Filter kTextFilters[] = {
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"join", filter_join},
    {"lower", filter_lower},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
};

}  // namespace

std::span<const Filter> text_filters() { return kTextFilters; }

}  // namespace trtmc::jinja
