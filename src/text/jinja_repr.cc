#include "text/jinja_repr.h"

#include <fmt/format.h>

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

// \xhh, \uhhhh or \Uhhhhhhhh.
void append_numbered(std::string& out, char32_t c) {
  const auto number = static_cast<uint32_t>(c);
  out += number < 0x100     ? fmt::format("\\x{:02x}", number)
         : number < 0x10000 ? fmt::format("\\u{:04x}", number)
                            : fmt::format("\\U{:08x}", number);
}

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
  } else {
    append_numbered(out, c);
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

std::string ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto code_point = *decode_utf8(text);
    if (code_point.value < 0x80) {
      out += text[0];
    } else {
      append_numbered(out, code_point.value);
    }
    text.remove_prefix(static_cast<size_t>(code_point.length));
  }
  return out;
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
