#include "text/jinja_repr.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "text/jinja_limits.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace trtmc::jinja {
namespace {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  // `level` counts the containers around the value; namespaces can be their own members.
  void write(const Value& value, int level) {
    if (level > kMaxValueDepth) fail_limit("a value of the template is nested too deeply to print");
    if (out_.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
    if (const String* text = value.string()) {
      write_string(*text);
    } else if (const bool* boolean = value.boolean()) {
      out_ += *boolean ? "True" : "False";
    } else if (const int64_t* integer = value.integer()) {
      out_ += std::to_string(*integer);
    } else if (const double* real = value.real()) {
      out_ += repr_float(*real);
    } else if (const BigInteger* big = value.big_integer()) {
      out_ += big->digits;
    } else if (value.is_none()) {
      out_ += "None";
    } else if (value.is_undefined()) {
      out_ += "Undefined";
    } else {
      write_container(value, level);
    }
  }

 private:
  void write_string(const String& text) {
    out_ +=
        text.markup ? fmt::format("Markup({})", repr_string(text.text)) : repr_string(text.text);
  }

  void write_container(const Value& value, int level) {
    if (const Sequence* items = value.sequence()) {
      write_sequence(*items, value.type_name(), level);
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict, level);
    } else if (const Range* range = value.range()) {
      out_ += range->step == 1
                  ? fmt::format("range({}, {})", range->start, range->stop)
                  : fmt::format("range({}, {}, {})", range->start, range->stop, range->step);
    } else if (const Namespace* space = value.name_space()) {
      out_ += "<Namespace ";
      write_dict(space->attributes, level);
      out_ += '>';
    } else if (const Object* object = value.object()) {
      out_ += object->repr();
    } else {
      out_ += fmt::format("<{} object>", value.type_name());
    }
  }

  void write_sequence(const Sequence& items, std::string_view type_name, int level) {
    const bool tuple = items.kind == Sequence::Kind::kTuple;
    const bool view = items.kind > Sequence::Kind::kTuple;
    if (view) out_ += fmt::format("{}(", type_name);
    out_ += tuple ? '(' : '[';
    for (size_t i = 0; i < items.items.size(); ++i) {
      if (i > 0) out_ += ", ";
      write(items.items[i], level + 1);
    }
    if (tuple && items.items.size() == 1) out_ += ',';
    out_ += tuple ? ')' : ']';
    if (view) out_ += ')';
  }

  void write_dict(const Dict& dict, int level) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) out_ += ", ";
      first = false;
      write(key, level + 1);
      out_ += ": ";
      write(value, level + 1);
    }
    out_ += '}';
  }

  std::string& out_;
};

void append_escaped(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (has_property(c, Property::kPrintable)) {
    append_utf8(out, c);
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

}  // namespace

std::string repr_string(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    // Printable ASCII, by far the most, goes without a look at the tables.
    const char byte = text[i];
    if (byte >= 0x20 && byte < 0x7F && byte != quote && byte != '\\') {
      out += byte;
      ++i;
      continue;
    }
    const auto code_point = *decode_utf8(text.substr(i));
    append_escaped(out, code_point.value, quote);
    i += static_cast<size_t>(code_point.length);
  }
  out += quote;
  return out;
}

std::string repr_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest digits that read back equal, as d.ddde±xx.
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  const char* exponent_text = text.data() + e + 1;
  std::from_chars(*exponent_text == '+' ? exponent_text + 1 : exponent_text, end, exponent);
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = text[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_repr(std::string& out, const Value& value) { Writer(out).write(value, 0); }

std::string repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

std::string to_text(const Value& value) {
  if (const String* text = value.string()) return text->text;
  if (value.is_undefined()) return {};
  return repr(value);
}

}  // namespace trtmc::jinja
