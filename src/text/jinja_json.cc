#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/utf8.h"
#include "text/jinja_repr.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

void append_unit(std::string& out, uint32_t unit) { out += fmt::format("\\u{:04x}", unit); }

void append_escaped(std::string& out, char32_t c, bool ensure_ascii) {
  static constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kLetters = "\"\\bfnrt";
  const size_t at = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
  if (at != std::string_view::npos) {
    out += '\\';
    out += kLetters[at];
  } else if (c < 0x20 || (ensure_ascii && c > 0x7E && c < 0x10000)) {
    append_unit(out, c);
  } else if (ensure_ascii && c >= 0x10000) {
    append_unit(out, 0xD800 + ((c - 0x10000) >> 10));
    append_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
  } else {
    append_utf8(out, c);
  }
}

// Stands for itself in any style.
bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

std::string float_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return repr_float(value);
}

class Writer {
 public:
  Writer(std::string& out, Meter& meter, const JsonStyle& style)
      : out_(out), meter_(meter), style_(style) {}

  void write(const Value& value, size_t level) {
    if (out_.size() > kMaxStringBytes) fail_limit("a string of the template gets too long");
    if (const String* text = value.string()) {
      write_string(text->text);
    } else if (const Sequence* items = value.sequence();
               items && items->kind <= Sequence::Kind::kTuple) {
      write_list('[', ']', items->items, level, [&](const Value& item) { write(item, level + 1); });
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict, level);
    } else if (const auto word = scalar(value)) {
      out_ += *word;
    } else {
      if (const Undefined* undefined = value.undefined()) fail(undefined->message());
      fail(fmt::format("a value of type {} has no form in JSON", value.type_name()));
    }
  }

 private:
  static std::optional<std::string> scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* boolean = value.boolean()) return *boolean ? "true" : "false";
    if (const double* real = value.real()) return float_text(*real);
    if (value.integer() || value.big_integer()) return to_text(value);
    return std::nullopt;
  }

  void write_string(std::string_view text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const size_t first = i;
      while (i < text.size() && is_plain(text[i])) ++i;
      out_ += text.substr(first, i - first);
      if (i == text.size()) break;
      const auto code_point = *decode_utf8(text.substr(i));
      append_escaped(out_, code_point.value, style_.ensure_ascii);
      i += static_cast<size_t>(code_point.length);
    }
    out_ += '"';
  }

  void write_dict(const Dict& dict, size_t level) {
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto* left, const auto* right) {
        return compare(left->first, right->first, "<") == -1;
      });
    }
    write_list('{', '}', entries, level, [&](const Dict::Entry* entry) {
      const auto key = entry->first.string() ? entry->first.string()->text : scalar(entry->first);
      if (!key) {
        fail(fmt::format("a key of type {} has no form in JSON", entry->first.type_name()));
      }
      write_string(*key);
      out_ += style_.key_separator;
      write(entry->second, level + 1);
    });
  }

  template <typename Items, typename WriteItem>
  void write_list(char open, char close, const Items& items, size_t level,
                  const WriteItem& write_item) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line(level + 1);
      write_item(item);
    }
    if (!first) new_line(level);
    out_ += close;
  }

  void new_line(size_t level) {
    if (!style_.indent) return;
    out_ += '\n';
    // The level is bounded by the depth of values, the indentation by the meter.
    meter_.spend_bytes(level * style_.indent->size());
    for (size_t i = 0; i < level; ++i) out_ += *style_.indent;
  }

  std::string& out_;
  Meter& meter_;
  const JsonStyle& style_;
};

}  // namespace

std::string to_json(Meter& meter, const Value& value, const JsonStyle& style) {
  meter.spend(value.extent().weight);
  std::string out;
  Writer(out, meter, style).write(value, 0);
  meter.spend_text(out.size());
  meter.make_string(out.size());
  return out;
}

}  // namespace trtmc::jinja
