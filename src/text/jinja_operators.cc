#include "text/jinja_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja_arithmetic.h"
#include "text/jinja_eval.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/jinja_search.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

void refuse_undefined(const Value& value) {
  if (const Undefined* undefined = value.undefined()) fail(undefined->message());
}

// Keys and items of a dict calculate as sets, which are no values here.
bool is_set(const Value& value) {
  const Sequence* sequence = value.sequence();
  return sequence && (sequence->kind == Sequence::Kind::kDictKeys ||
                      sequence->kind == Sequence::Kind::kDictItems);
}

[[noreturn]] void fail_operands(std::string_view symbol, const Value& left, const Value& right) {
  if (symbol == "-" && (is_set(left) || is_set(right))) {
    fail_unsupported(fmt::format("the difference of {} and {} is not supported", left.type_name(),
                                 right.type_name()));
  }
  refuse_undefined(left);
  refuse_undefined(right);
  fail(fmt::format("unsupported operand types for {}: {} and {}", symbol, left.type_name(),
                   right.type_name()));
}

Value add_strings(Meter& meter, const String& left, const String& right) {
  meter.make_string(left.text.size() + right.text.size());
  // Markup escapes what is added to it.
  const bool markup = left.markup || right.markup;
  std::string text = markup && !left.markup ? escape_html(left.text) : left.text;
  text += markup && !right.markup ? escape_html(right.text) : right.text;
  return Value(std::move(text), markup);
}

bool same_kind(const Sequence* left, const Sequence* right) {
  return left && right && left->kind == right->kind && left->kind <= Sequence::Kind::kTuple;
}

Value add(Meter& meter, const Value& left, const Value& right) {
  if (left.string() && right.string()) return add_strings(meter, *left.string(), *right.string());
  if (!same_kind(left.sequence(), right.sequence())) fail_operands("+", left, right);
  const Sequence &first = *left.sequence(), &second = *right.sequence();
  meter.make_items(first.items.size() + second.items.size());
  std::vector<Value> items = first.items;
  items.insert(items.end(), second.items.begin(), second.items.end());
  return Value::sequence(first.kind, std::move(items));
}

Value repeat(Meter& meter, const Value& value, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (const String* text = value.string()) {
    const uint64_t size = text->text.size();
    if (size > 0 && times > kMaxStringBytes / size)
      fail_limit("a string of the template gets too long");
    meter.make_string(size * times);
    if (size == 1) return Value(std::string(times, text->text[0]), text->markup);
    std::string result;
    result.reserve(size * times);
    for (uint64_t i = 0; i < (size ? times : 0); ++i) result += text->text;
    return Value(std::move(result), text->markup);
  }
  const Sequence& sequence = *value.sequence();
  const uint64_t size = sequence.items.size();
  if (size > 0 && times > kMaxItems / size) fail_limit("a list of the template gets too long");
  meter.make_items(size * times);
  std::vector<Value> items;
  for (uint64_t i = 0; i < (size ? times : 0); ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return Value::sequence(sequence.kind, std::move(items));
}

bool repeatable(const Value& value) { return value.string() || value.list() || value.tuple(); }

// A subscript of a list or a string: from the end if it is negative, nothing if it is outside.
std::optional<size_t> position_in(int64_t index, int64_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<size_t>(index);
}

std::optional<Value> character_at(Meter& meter, const String& text, int64_t index) {
  if (!text.ascii) meter.spend_bytes(2 * text.text.size());
  const int64_t size =
      static_cast<int64_t>(text.ascii ? text.text.size() : count_code_points(text.text));
  const auto at = position_in(index, size);
  if (!at) return std::nullopt;
  const size_t offset = text.ascii ? *at : byte_offset(text.text, *at);
  const size_t end = text.ascii ? offset + 1 : offset + byte_offset(text.text.substr(offset, 4), 1);
  return Value(text.text.substr(offset, end - offset), text.markup);
}

// value[index] where Python gives something.
std::optional<Value> subscript(Meter& meter, const Value& value, const Value& index) {
  if (const Dict* dict = value.dict()) {
    if (index.sequence() && !index.tuple()) return std::nullopt;
    if (index.dict()) return std::nullopt;
    meter.spend(index.extent().weight);
    const Value* found = dict->find(index);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto number = index.as_integer();
  if (!number) return std::nullopt;
  if (const Sequence* items = value.sequence(); items && items->kind <= Sequence::Kind::kTuple) {
    const auto at = position_in(*number, static_cast<int64_t>(items->items.size()));
    return at ? std::optional(items->items[*at]) : std::nullopt;
  }
  if (const String* text = value.string()) return character_at(meter, *text, *number);
  if (const Range* range = value.range()) {
    const auto at = position_in(*number, range->size());
    if (at) return range->at(static_cast<int64_t>(*at));
  }
  return std::nullopt;
}

bool is_dunder(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

// The few attributes of values that are no methods.
std::optional<Value> data_attribute(const Value& value, std::string_view name) {
  if (const Range* range = value.range()) {
    if (name == "start") return range->start;
    if (name == "stop") return range->stop;
    if (name == "step") return range->step;
  }
  if (const Sequence* group = value.tuple(); group && group->is_group) {
    if (name == "grouper") return group->items[0];
    if (name == "list") return group->items[1];
  }
  if (name == "real" && value.as_real()) return value.as_integer() ? *value.as_integer() : value;
  if (name == "imag" && value.as_real()) return value.real() ? Value(0.0) : Value(int64_t{0});
  if (const auto integer = value.as_integer()) {
    if (name == "numerator") return *integer;
    if (name == "denominator") return int64_t{1};
  }
  return std::nullopt;
}

// Python's getattr in the sandbox.
std::optional<Value> python_attribute(Interpreter& interpreter, const Value& value,
                                      std::string_view name) {
  if (const Namespace* space = value.name_space()) {
    const Value* found = space->attributes.find(name);
    if (found && !name.starts_with('_')) return *found;
    if (found) return Value::undefined({{}, {}, fmt::format("access to '{}' is unsafe", name)});
  }
  if (Object* object = value.object()) {
    if (auto found = object->attribute(interpreter, name)) return found;
  }
  if (const Method* method = find_method(value, name)) return bind_method(*method, value);
  if (auto found = data_attribute(value, name)) return found;
  if (is_dunder(name)) {
    return Value::undefined({{}, {}, fmt::format("access to '{}' is unsafe", name)});
  }
  return std::nullopt;
}

// Where a slice begins, ends, and how it steps; Python's slice.indices.
struct Bounds {
  int64_t start, stop, step;
};

std::optional<int64_t> slice_bound(const Value& value) {
  if (!value.is_set() || value.is_none()) return std::nullopt;
  const auto integer = value.as_integer();
  if (!integer) {
    refuse_undefined(value);
    fail("slice indices must be integers or none");
  }
  return integer;
}

Bounds slice_bounds(const Value& start, const Value& stop, const Value& step, int64_t size) {
  // Python lets no step go below this either, so that it can be negated.
  constexpr int64_t kLowestStep = -std::numeric_limits<int64_t>::max();
  Bounds bounds{0, 0, std::max(slice_bound(step).value_or(1), kLowestStep)};
  if (bounds.step == 0) fail("the step of a slice can't be zero");
  const bool back = bounds.step < 0;
  const int64_t low = back ? -1 : 0, high = back ? size - 1 : size;
  const auto clamped = [&](const Value& bound, int64_t otherwise) {
    auto index = slice_bound(bound);
    if (!index) return otherwise;
    if (*index < 0) index = *index < -size ? low : *index + size;
    return std::clamp(*index, low, std::max(low, high));
  };
  bounds.start = clamped(start, back ? high : low);
  bounds.stop = clamped(stop, back ? low : high);
  return bounds;
}

// Calls `take` with each index of the slice.
template <typename Take>
void for_each_index(const Bounds& bounds, const Take& take) {
  const Range range{bounds.start, bounds.stop, bounds.step};
  const int64_t size = range.size();
  for (int64_t i = 0; i < size; ++i) take(static_cast<size_t>(range.at(i)));
}

Value slice_string(Meter& meter, const String& text, const Value& start, const Value& stop,
                   const Value& step) {
  meter.make_string(text.text.size());
  const int64_t size =
      static_cast<int64_t>(text.ascii ? text.text.size() : count_code_points(text.text));
  const Bounds bounds = slice_bounds(start, stop, step, size);
  if (bounds.step == 1) {
    const auto first = static_cast<size_t>(bounds.start);
    const auto last = static_cast<size_t>(std::max(bounds.start, bounds.stop));
    const size_t begin = text.ascii ? first : byte_offset(text.text, first);
    const size_t end = text.ascii ? last : byte_offset(text.text, last);
    return Value(text.text.substr(begin, end - begin), text.markup);
  }
  meter.spend(static_cast<uint64_t>(size));
  const std::u32string code_points = to_utf32(text.text);
  std::u32string result;
  for_each_index(bounds, [&](size_t i) { result += code_points[i]; });
  return Value(to_utf8(result), text.markup);
}

Value slice_range(const Range& range, const Value& start, const Value& stop, const Value& step) {
  const Bounds bounds = slice_bounds(start, stop, step, range.size());
  const auto at = [&](int64_t index) {
    return add_integers(range.start, multiply_integers(index, range.step));
  };
  return Range{at(bounds.start), at(bounds.stop), multiply_integers(range.step, bounds.step)};
}

}  // namespace

Value binary(Meter& meter, std::string_view symbol, const Value& left, const Value& right) {
  if (left.as_real() && right.as_real()) return calculate(symbol, left, right);
  if (symbol == "+") return add(meter, left, right);
  if (symbol == "*") {
    if (repeatable(left) && right.as_integer()) return repeat(meter, left, *right.as_integer());
    if (repeatable(right) && left.as_integer()) return repeat(meter, right, *left.as_integer());
  }
  if (symbol == "%" && left.string()) return format_percent(meter, *left.string(), right);
  fail_operands(symbol, left, right);
}

Value unary(std::string_view symbol, const Value& operand) {
  if (operand.as_real()) return symbol == "-" ? negated(operand) : absolute_sign(operand);
  refuse_undefined(operand);
  fail(fmt::format("bad operand type for unary {}: {}", symbol, operand.type_name()));
}

bool contains(Meter& meter, const Value& container, const Value& item) {
  if (const String* text = container.string()) {
    const String* part = item.string();
    if (!part) {
      refuse_undefined(item);
      fail(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    meter.spend_bytes(text->text.size() + part->text.size());
    return find_text(text->text, part->text, 0) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    meter.spend(item.extent().weight);
    return dict->find(item) != nullptr;
  }
  if (const Range* range = container.range(); range && item.as_integer()) {
    return range->contains(*item.as_integer());
  }
  if (container.is_undefined()) return false;
  meter.spend(container.extent().weight);
  const auto is_item = [&](const Value& other) {
    return other.same_as(item) || equal(other, item);
  };
  if (const Sequence* items = container.sequence()) {
    return std::any_of(items->items.begin(), items->items.end(), is_item);
  }
  if (!container.range() && !container.iterator()) {
    fail(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
  const std::vector<Value> items = items_of(meter, container);
  return std::any_of(items.begin(), items.end(), is_item);
}

bool compared(Meter& meter, std::string_view symbol, const Value& left, const Value& right) {
  if (symbol == "in") return contains(meter, right, left);
  if (symbol == "not in") return !contains(meter, right, left);
  meter.spend(std::min(left.extent().weight, right.extent().weight));
  if (symbol == "==") return equal(left, right);
  if (symbol == "!=") return !equal(left, right);
  const int order = compare(left, right, symbol);
  if (order == 2) return false;
  if (symbol == "<") return order < 0;
  if (symbol == "<=") return order <= 0;
  return symbol == ">" ? order > 0 : order >= 0;
}

Value item(Interpreter& interpreter, const Value& value, const Value& index) {
  refuse_undefined(value);
  if (auto found = subscript(interpreter.meter(), value, index)) return *found;
  if (const String* name = index.string()) {
    if (auto found = python_attribute(interpreter, value, name->text)) return *found;
    return Value::undefined({name->text, value.type_name(), {}});
  }
  return Value::undefined({"item", value.type_name(), {}});
}

Value attribute(Interpreter& interpreter, const Value& value, std::string_view name) {
  if (!is_dunder(name)) refuse_undefined(value);
  if (auto found = python_attribute(interpreter, value, name)) return *found;
  if (const Dict* dict = value.dict()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return Value::undefined({std::string(name), value.type_name(), {}});
}

Value own_attribute(Interpreter& interpreter, const Value& value, std::string_view name) {
  if (!name.starts_with("__")) refuse_undefined(value);
  if (auto found = python_attribute(interpreter, value, name)) return *found;
  return Value::undefined({std::string(name), value.type_name(), {}});
}

Value slice(Meter& meter, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  if (const String* text = value.string()) return slice_string(meter, *text, start, stop, step);
  if (const Range* range = value.range()) return slice_range(*range, start, stop, step);
  const Sequence* sequence = value.sequence();
  if (!sequence || sequence->kind > Sequence::Kind::kTuple) {
    refuse_undefined(value);
    fail(fmt::format("a value of type {} can't be sliced", value.type_name()));
  }
  const Bounds bounds =
      slice_bounds(start, stop, step, static_cast<int64_t>(sequence->items.size()));
  meter.make_items(sequence->items.size());
  std::vector<Value> items;
  for_each_index(bounds, [&](size_t i) { items.push_back(sequence->items[i]); });
  return Value::sequence(sequence->kind, std::move(items));
}

int64_t length(const Value& value) {
  if (const String* text = value.string()) {
    return static_cast<int64_t>(text->ascii ? text->text.size() : count_code_points(text->text));
  }
  if (const Sequence* items = value.sequence()) return static_cast<int64_t>(items->items.size());
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->size());
  if (const Range* range = value.range()) return range->size();
  if (value.is_undefined()) return 0;
  fail(fmt::format("a value of type {} has no length", value.type_name()));
}

std::vector<Value> items_of(Meter& meter, const Value& value) {
  if (const String* text = value.string()) meter.spend_bytes(text->text.size());
  if (value.string() || value.sequence() || value.dict() || value.range()) {
    meter.make_items(static_cast<size_t>(length(value)));
  } else if (const Iterator* items = value.iterator()) {
    meter.make_items(items->items.size() - items->next);
  }
  return iterate(value);
}

}  // namespace trtmc::jinja
