#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/utf8.h"
#include "text/jinja_eval.h"
#include "text/jinja_format_scanner.h"
#include "text/jinja_number_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_repr.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

// A Markup escapes what comes into it.
// `conversion`: 's' is str(), 'r' is repr(), 'a' is ascii().
std::string paid_text(Meter& meter, const Value& value, char conversion, bool escapes) {
  meter.spend(value.extent().weight);
  std::string text = conversion == 's' ? to_text(value) : repr(value);
  const bool is_markup = value.string() && value.string()->markup && conversion == 's';
  if (escapes && !is_markup) text = escape_html(text);
  if (conversion == 'a') text = ascii(text);
  meter.make_string(text.size());
  return text;
}

void refuse_non_number(const Value& value, char type) {
  if (value.as_real()) return;
  if (const Undefined* undefined = value.undefined()) fail(undefined->message());
  fail(fmt::format("the format '{}' takes a number, not a value of type {}", type,
                   value.type_name()));
}

// A float as the integer that %d prints.
Value truncated(const Value& value) {
  const double* real = value.real();
  if (!real) return value;
  if (!std::isfinite(*real)) fail("infinity and nan have no integer");
  if (std::abs(*real) >= 9.2e18) fail_unsupported("an integer beyond 64 bits is not supported");
  return static_cast<int64_t>(*real);
}

// "%s" % values.
class PercentFormatter {
 public:
  PercentFormatter(Meter& meter, const String& text, const Value& arguments)
      : meter_(meter), scanner_(text.text), arguments_(arguments), escapes_(text.markup) {}

  std::string run() {
    std::string result;
    while (!scanner_.at_end()) {
      result += scanner_.take_until("%");
      if (scanner_.skip('%')) result += conversion();
      if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
    }
    const Sequence* tuple = arguments_.tuple();
    const bool left = tuple ? used_ < tuple->items.size() : used_ == 0 && !is_mapping();
    if (left) fail("not all arguments are used by the format");
    meter_.make_string(result.size());
    return result;
  }

 private:
  // What Python takes for a mapping here: anything with a subscript but strings and tuples.
  bool is_mapping() const {
    return arguments_.dict() || arguments_.list() || arguments_.range() ||
           arguments_.is_undefined();
  }

  Value next_value() {
    const Sequence* tuple = arguments_.tuple();
    const size_t count = tuple ? tuple->items.size() : 1;
    if (used_ >= count) fail("the format needs more arguments");
    ++used_;
    return tuple ? tuple->items[used_ - 1] : arguments_;
  }

  std::optional<Value> named_value() {
    if (!scanner_.skip('(')) return std::nullopt;
    const std::string_view name = scanner_.take_until(")");
    if (!scanner_.skip(')')) fail("the name in a format has no ')'");
    const Dict* dict = arguments_.dict();
    const Value* value = dict ? dict->find(name) : nullptr;
    if (!value) fail(fmt::format("the format's '{}' is not among the arguments", name));
    return *value;
  }

  std::string conversion() {
    std::optional<Value> named = named_value();
    FormatSpec spec;
    spec.align = '>';
    bool zero = false, left = false;
    for (bool flag = true; flag;) {
      switch (scanner_.peek()) {
        case '-':
          left = true;
          break;
        case '0':
          zero = true;
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign == '-') spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        default:
          flag = false;
      }
      if (flag) scanner_.take();
    }
    spec.width = width().value_or(0);
    if (scanner_.skip('.')) spec.precision = width().value_or(0);
    if (scanner_.peek() == 'l' || scanner_.peek() == 'h' || scanner_.peek() == 'L') scanner_.take();
    if (scanner_.at_end()) fail("the format is incomplete");
    spec.type = scanner_.take();
    if (spec.type == '%') return "%";
    const Value value = named ? *named : next_value();
    if (left) {
      spec.align = '<';
    } else if (zero && std::string_view("diuxXofFeEgG").find(spec.type) != std::string_view::npos) {
      spec.align = '=';
      spec.fill = "0";
    }
    return converted(value, spec);
  }

  std::optional<int64_t> width() {
    if (scanner_.peek() == '*') fail_unsupported("'*' in a format is not supported");
    return scanner_.take_number();
  }

  std::string converted(const Value& value, FormatSpec spec) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return format_text(meter_, paid_text(meter_, value, spec.type, escapes_), spec);
      case 'd':
      case 'i':
      case 'u':
        refuse_non_number(value, spec.type);
        spec.type = 'd';
        return format_number(meter_, truncated(value), spec);
      case 'x':
      case 'X':
      case 'o':
        if (!value.as_integer()) fail(fmt::format("%{} takes an integer", spec.type));
        return format_number(meter_, value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        refuse_non_number(value, spec.type);
        return format_number(meter_, value, spec);
      case 'c':
        spec.precision.reset();
        return character(value, spec);
      default:
        fail_unsupported(fmt::format("the format %{} is not supported", spec.type));
    }
  }

  std::string character(const Value& value, const FormatSpec& spec) {
    if (const String* text = value.string(); text && count_code_points(text->text) == 1) {
      return format_text(meter_, text->text, spec);
    }
    const auto code_point = value.as_integer();
    const bool valid = code_point && *code_point >= 0 && *code_point <= 0x10FFFF &&
                       (*code_point < 0xD800 || *code_point > 0xDFFF);
    if (!valid) fail("%c takes one character");
    std::string text;
    append_utf8(text, static_cast<char32_t>(*code_point));
    return format_text(meter_, text, spec);
  }

  Meter& meter_;
  FormatScanner scanner_;
  const Value& arguments_;
  bool escapes_;
  size_t used_ = 0;
};

// "{}".format(values).
class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const String& text, const Arguments& arguments)
      : interpreter_(interpreter),
        scanner_(text.text),
        arguments_(arguments),
        escapes_(text.markup) {}

  std::string run() {
    std::string result;
    while (!scanner_.at_end()) {
      result += scanner_.take_until("{}");
      if (scanner_.at_end()) break;
      const char brace = scanner_.take();
      if (scanner_.skip(brace)) {
        result += brace;
      } else if (brace == '}') {
        fail("a single '}' in a format");
      } else {
        result += field();
      }
      if (result.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
    }
    interpreter_.meter().make_string(result.size());
    return result;
  }

 private:
  // A field may stand in the specification of another, but not in that of such a one.
  std::string field(bool nested = false) {
    Value value = looked_up();
    if (scanner_.skip('!')) {
      const char conversion = scanner_.take();
      if (conversion != 's' && conversion != 'r' && conversion != 'a') {
        fail(fmt::format("unknown conversion '!{}'", conversion));
      }
      value = paid_text(interpreter_.meter(), value, conversion, false);
    }
    std::string specification;
    if (scanner_.skip(':')) specification = scanner_.take_until("{}");
    while (scanner_.skip('{')) {
      if (nested) fail("the fields of a format are nested too deeply");
      specification += field(true);
      specification += scanner_.take_until("{}");
    }
    if (!scanner_.skip('}')) fail("a field of a format has no '}'");
    // What is not text needs no escape.
    std::string text = laid_out(value, specification);
    return escapes_ && value.string() && !specification.empty() ? escape_html(text) : text;
  }

  // A field's number is digits alone; with a sign or a space it is a name.
  static std::optional<int64_t> parse_index(std::string_view name) {
    const auto is_other = [](char c) { return (c & 0x80) == 0 && (c < '0' || c > '9'); };
    return std::ranges::any_of(name, is_other) ? std::nullopt : parse_integer(name);
  }

  Value looked_up() {
    Value value = argument(scanner_.take_until(".[!:{}"));
    while (true) {
      if (scanner_.skip('.')) {
        value = attribute(interpreter_, value, scanner_.take_until(".[!:{}"));
      } else if (scanner_.skip('[')) {
        const std::string_view key = scanner_.take_until("]");
        if (!scanner_.skip(']')) fail("an index of a format has no ']'");
        const auto number = parse_index(key);
        value = item(interpreter_, value, number ? Value(*number) : Value(key));
      } else {
        return value;
      }
    }
  }

  Value argument(std::string_view name) {
    if (const auto number = parse_index(name); number || name.empty()) {
      const bool automatic = name.empty();
      // Python looks at fields without a path only.
      const bool plain = scanner_.peek() != '.' && scanner_.peek() != '[';
      if (automatic && !plain) fail("a field of a format has a path but no name");
      if (plain && automatic_ && *automatic_ != automatic) {
        fail("a format numbers its fields or does not");
      }
      if (plain) automatic_ = automatic;
      const auto index = automatic ? next_++ : static_cast<size_t>(*number);
      if (index >= arguments_.positional.size()) fail("the format needs more arguments");
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail(fmt::format("the format's '{}' is not among the arguments", name));
  }

  std::string laid_out(const Value& value, std::string_view specification) {
    Meter& meter = interpreter_.meter();
    if (specification.empty()) return paid_text(meter, value, 's', escapes_);
    const String* markup = value.string() && value.string()->markup ? value.string() : nullptr;
    if (escapes_ && markup) fail("a safe string has no format specification");
    FormatSpec spec = parsed(specification, value.string() != nullptr);
    if (value.string()) {
      if (spec.type != '\0' && spec.type != 's') fail("this format takes a number");
      return format_text(meter, value.string()->text, spec);
    }
    refuse_non_number(value, spec.type);
    if (spec.type == '\0' && !value.real()) spec.type = 'd';
    if (spec.type == 'n' && !spec.grouping) spec.type = value.real() ? 'g' : 'd';  // Locale "C".
    check_number(value, spec);
    return format_number(meter, value, spec);
  }

  static void check_number(const Value& value, const FormatSpec& spec) {
    if (spec.type == '\0') return;
    if (spec.type == 'c') fail_unsupported("the format 'c' is not supported");
    if (std::string_view("bdoxXeEfFgG%").find(spec.type) == std::string_view::npos) {
      fail(fmt::format("unknown format '{}'", spec.type));
    }
    const bool of_integer = std::string_view("bdoxX").find(spec.type) != std::string_view::npos;
    if (of_integer && value.real())
      fail(fmt::format("the format '{}' takes an integer", spec.type));
    if (of_integer && spec.precision) fail("an integer has no precision");
    if (of_integer && spec.type != 'd' && spec.grouping == ',') {
      fail(fmt::format("no ',' between the digits of '{}'", spec.type));
    }
  }

  // [[fill]align][sign][#][0][width][,][.precision][type]
  static FormatSpec parsed(std::string_view specification, bool of_text) {
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    const auto refuse_for_text = [&](bool given, std::string_view what) {
      if (of_text && given) fail(fmt::format("a string is formatted without {}", what));
    };
    FormatSpec spec;
    FormatScanner scanner(specification);
    const size_t first = byte_offset(specification, 1);
    const bool has_fill = is_align(scanner.peek(first));
    if (has_fill) {
      spec.fill = scanner.take_code_point();
      spec.align = scanner.take();
    } else if (is_align(scanner.peek())) {
      spec.align = scanner.take();
    }
    if (scanner.peek() == '+' || scanner.peek() == '-' || scanner.peek() == ' ') {
      spec.sign = scanner.take();
      refuse_for_text(true, "a sign");
    }
    spec.alternate = scanner.skip('#');
    refuse_for_text(spec.alternate, "'#'");
    if (!has_fill && scanner.skip('0')) {
      spec.fill = "0";
      if (!spec.align && !of_text) spec.align = '=';
    }
    spec.width = scanner.take_number().value_or(0);
    if (scanner.peek() == ',' || scanner.peek() == '_') spec.grouping = scanner.take();
    refuse_for_text(spec.grouping != '\0', "a separator");
    if (scanner.skip('.')) {
      spec.precision = scanner.take_number();
      if (!spec.precision) fail("a format lacks its precision");
    }
    if (!scanner.at_end()) spec.type = scanner.take();
    if (!scanner.at_end()) fail("a format specification is not valid");
    return spec;
  }

  Interpreter& interpreter_;
  FormatScanner scanner_;
  const Arguments& arguments_;
  bool escapes_;
  std::optional<bool> automatic_;
  size_t next_ = 0;
};

}  // namespace

Value format_percent(Meter& meter, const String& text, const Value& arguments) {
  return Value(PercentFormatter(meter, text, arguments).run(), text.markup);
}

Value format_braces(Interpreter& interpreter, const String& text, const Arguments& arguments) {
  return Value(BraceFormatter(interpreter, text, arguments).run(), text.markup);
}

}  // namespace trtmc::jinja
