// Filters from a sequence to another, or to one of its items.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "text/jinja_attribute_path.h"
#include "text/jinja_eval.h"
#include "text/jinja_filter_tables.h"
#include "text/jinja_operators.h"
#include "text/jinja_tests.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

// What a generator yields: `make` appends its items and may fail in the middle.
template <typename Make>
Value generator(const Make& make) {
  std::vector<Value> items;
  std::optional<Failure> failure;
  try {
    make(items);
  } catch (const Failure& caught) {
    if (caught.is_limit) throw;
    failure = caught;
  }
  return Value::iterator(std::move(items), "generator", std::move(failure));
}

Value filter_list(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "list", {});
  return Value::list(items_of(interpreter.meter(), value));
}

Value filter_first(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "first", {});
  if (Iterator* items = value.iterator(); items && items->next < items->items.size()) {
    return items->items[items->next++];
  }
  if (const Sequence* items = value.sequence(); items && !items->items.empty()) {
    return items->items.front();
  }
  const std::vector<Value> items = items_of(interpreter.meter(), value);
  return items.empty() ? Value::undefined({{}, {}, "no first item, the sequence is empty"})
                       : items.front();
}

void refuse_iterator(const Value& value, std::string_view filter) {
  if (value.iterator()) {
    fail(fmt::format("{}() takes a sequence, not a {}", filter, value.type_name()));
  }
}

Value filter_last(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "last", {});
  refuse_iterator(value, "last");
  // Reversing a string goes by its subscripts, which keep a Markup one.
  if (truthy(value) && value.string()) return item(interpreter, value, int64_t{-1});
  if (const Sequence* items = value.sequence(); items && !items->items.empty()) {
    return items->items.back();
  }
  const std::vector<Value> items = items_of(interpreter.meter(), value);
  return items.empty() ? Value::undefined({{}, {}, "no last item, the sequence is empty"})
                       : items.back();
}

Value filter_reverse(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "reverse", {});
  if (value.string()) return slice(interpreter.meter(), value, Value(), Value(), int64_t{-1});
  std::vector<Value> items = items_of(interpreter.meter(), value);
  std::reverse(items.begin(), items.end());
  if (value.iterator()) return Value::list(std::move(items));
  return Value::iterator(std::move(items), "reversed iterator");
}

Value filter_items(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "items", {});
  return generator([&](std::vector<Value>& items) {
    const Dict* dict = value.dict();
    if (value.is_undefined()) return;
    if (!dict) fail(fmt::format("items() takes a dict, not a value of type {}", value.type_name()));
    interpreter.meter().make_items(2 * dict->size());
    for (const auto& [key, item] : dict->entries()) items.push_back(Value::tuple({key, item}));
  });
}

// Sorts `items` by keys, in the order of the items where they are equal.
std::vector<Value> sorted(Interpreter& interpreter, std::vector<Value> items,
                          const std::vector<Value>& keys, bool reverse) {
  uint64_t weight = 0;
  for (const Value& key : keys) weight += std::min(key.extent().weight, Meter::kMaxUnits);
  interpreter.meter().spend(weight * std::bit_width(keys.size()));
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    if (reverse) std::swap(left, right);
    return compare(keys[left], keys[right], "<") == -1;
  });
  std::vector<Value> result;
  result.reserve(items.size());
  for (const size_t i : order) result.push_back(std::move(items[i]));
  return result;
}

Value filter_sort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound.truthy_or(1, false);
  std::vector<ItemKey> parts;
  if (const String* names = bound.at(2).string()) {
    interpreter.meter().make_items(names->text.size());
    for (const std::string_view name : split(names->text, ",", -1)) {
      parts.emplace_back(interpreter, Value(name), case_sensitive);
    }
  } else {
    parts.emplace_back(interpreter, bound.at(2), case_sensitive);
  }
  std::vector<Value> items = items_of(interpreter.meter(), value), keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    key.reserve(parts.size());
    for (const ItemKey& part : parts) key.push_back(part.of(item));
    keys.push_back(Value::list(std::move(key)));
  }
  return Value::list(sorted(interpreter, std::move(items), keys, bound.truthy_or(0, false)));
}

Value filter_dictsort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  const std::string by = bound.string_or(1, "key");
  if (by != "key" && by != "value") fail("dictsort() sorts by \"key\" or \"value\"");
  const Dict* dict = value.dict();
  if (!dict)
    fail(fmt::format("dictsort() takes a dict, not a value of type {}", value.type_name()));
  const ItemKey key(interpreter, Value(), bound.truthy_or(0, false));
  std::vector<Value> items, keys;
  interpreter.meter().make_items(2 * dict->size());
  for (const auto& [name, item] : dict->entries()) {
    items.push_back(Value::tuple({name, item}));
    keys.push_back(key.of(by == "key" ? name : item));
  }
  return Value::list(sorted(interpreter, std::move(items), keys, bound.truthy_or(2, false)));
}

Value filter_unique(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "unique", {"case_sensitive", "attribute"});
  const ItemKey key(interpreter, bound.at(1), bound.truthy_or(0, false));
  return generator([&](std::vector<Value>& items) {
    Dict seen;
    for (const Value& item : items_of(interpreter.meter(), value)) {
      Value item_key = key.of(item);
      interpreter.meter().spend(item_key.extent().weight);
      if (seen.find(item_key)) continue;
      seen.set(std::move(item_key), true);
      items.push_back(item);
    }
  });
}

template <bool largest>
Value filter_extreme(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, largest ? "max" : "min", {"case_sensitive", "attribute"});
  const ItemKey key(interpreter, bound.at(1), bound.truthy_or(0, false));
  Value best, best_key;
  for (const Value& item : items_of(interpreter.meter(), value)) {
    Value item_key = key.of(item);
    interpreter.meter().spend(item_key.extent().weight);
    const bool better =
        !best.is_set() || compare(item_key, best_key, largest ? ">" : "<") == (largest ? 1 : -1);
    if (!better) continue;
    best = item;
    best_key = std::move(item_key);
  }
  return best.is_set() ? best
                       : Value::undefined({{}, {}, "no aggregated item, the sequence is empty"});
}

Value filter_sum(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "sum", {"attribute", "start"});
  const AttributePath path(interpreter, bound.at(0));
  Value total = bound.value_or(1, int64_t{0});
  if (total.string()) fail("sum() can't sum strings");
  for (const Value& item : items_of(interpreter.meter(), value)) {
    total = binary(interpreter.meter(), "+", total, path.of(item));
  }
  return total;
}

// Lists of `linecount` items each, the last one filled up with `fill_with` unless that is none.
// Python compares the count only, so that one which is no number cuts nowhere.
Value filter_batch(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "batch", {"linecount", "fill_with"}, 1);
  const Value fill = bound.value_or(1, None{});
  const Value& count = bound.at(0);
  return generator([&](std::vector<Value>& batches) {
    std::vector<Value> batch;
    const auto size = [&] { return Value(static_cast<int64_t>(batch.size())); };
    for (const Value& item : items_of(interpreter.meter(), value)) {
      if (equal(size(), count)) batches.push_back(Value::list(std::exchange(batch, {})));
      batch.push_back(item);
    }
    if (batch.empty()) return;
    if (!fill.is_none() && compare(size(), count, "<") == -1) {
      const auto wanted = static_cast<size_t>(bound.integer(0));
      interpreter.meter().make_items(wanted);
      batch.resize(wanted, fill);
    }
    batches.push_back(Value::list(std::move(batch)));
  });
}

Value filter_slice(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "slice", {"slices", "fill_with"}, 1);
  const Value fill = bound.value_or(1, None{});
  return generator([&](std::vector<Value>& result) {
    const std::vector<Value> items = items_of(interpreter.meter(), value);
    const int64_t count = bound.integer(0);
    if (count == 0) fail("slice() needs at least one slice");
    const auto slices = static_cast<size_t>(std::max<int64_t>(count, 0));
    interpreter.meter().make_items(slices);
    for (size_t i = 0, start = 0; i < slices; ++i) {
      const bool longer = i < items.size() % slices;
      const size_t size = items.size() / slices + (longer ? 1 : 0);
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(start);
      std::vector<Value> part(first, first + static_cast<std::ptrdiff_t>(size));
      if (!fill.is_none() && !longer) part.push_back(fill);
      result.push_back(Value::list(std::move(part)));
      start += size;
    }
  });
}

Value filter_groupby(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  const ItemKey key(interpreter, bound.at(0), bound.truthy_or(2, false));
  const AttributePath path(interpreter, bound.at(0));
  const Value fallback = bound.value_or(1, None{});
  std::vector<Value> items = items_of(interpreter.meter(), value), keys, groups, group;
  for (const Value& item : items) keys.push_back(key.of(item, fallback));
  items = sorted(interpreter, std::move(items), keys, false);
  Value group_key;
  const auto close_group = [&] {
    if (group.empty()) return;
    Value name = path.of(group.front(), fallback);
    groups.push_back(Value::group(std::move(name), Value::list(std::exchange(group, {}))));
  };
  for (const Value& item : items) {
    Value item_key = key.of(item, fallback);
    if (!group.empty() && !equal(item_key, group_key)) close_group();
    group.push_back(item);
    group_key = std::move(item_key);
  }
  close_group();
  return Value::list(std::move(groups));
}

const std::string& built_in_name(const Value& name) {
  if (!name.string()) fail("the name of a filter or a test must be a string");
  return name.string()->text;
}

// The arguments from number `first` on.
Arguments rest_of(const Arguments& arguments, size_t first) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(first));
  return rest;
}

// What `map` does to an item: a filter, or the look-up of an attribute.
std::function<Value(const Value&)> item_mapping(Interpreter& interpreter,
                                                const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const BoundArguments bound(arguments, "map", {"attribute", "default"}, 1);
    return [path = AttributePath(interpreter, bound.at(0)), fallback = bound.value_or(1, None{})](
               const Value& item) { return path.of(item, fallback); };
  }
  const std::string& name = built_in_name(arguments.positional[0]);
  const Filter* filter = find_filter(name);
  if (!filter) fail_unsupported(fmt::format("the filter '{}' is not supported", name));
  return [&interpreter, filter, rest = rest_of(arguments, 1)](const Value& item) {
    interpreter.meter().spend(1);
    return filter->apply(interpreter, item, rest);
  };
}

Value filter_map(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return generator([&](std::vector<Value>& result) {
    if (!truthy(value)) return;
    const auto mapped = item_mapping(interpreter, arguments);
    for (const Value& item : items_of(interpreter.meter(), value)) result.push_back(mapped(item));
  });
}

// What the select and reject filters ask of a value, from argument number `first` on.
std::function<bool(const Value&)> item_test(Interpreter& interpreter, const Arguments& arguments,
                                            size_t first) {
  if (arguments.positional.size() <= first) return truthy;
  const std::string& name = built_in_name(arguments.positional[first]);
  const Test* test = find_test(name);
  if (!test) fail_unsupported(fmt::format("the test '{}' is not supported", name));
  return [&interpreter, test, rest = rest_of(arguments, first + 1)](const Value& subject) {
    interpreter.meter().spend(1);
    return test->holds(interpreter, subject, rest);
  };
}

// select, reject, selectattr and rejectattr.
template <bool keeps, bool by_attribute>
Value filter_select(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return generator([&](std::vector<Value>& result) {
    if (!truthy(value)) return;
    if (by_attribute && arguments.positional.empty()) fail("the name of the attribute is missing");
    const AttributePath path(interpreter, by_attribute ? arguments.positional[0] : Value());
    const auto holds = item_test(interpreter, arguments, by_attribute ? 1 : 0);
    for (const Value& item : items_of(interpreter.meter(), value)) {
      if (holds(path.of(item)) == keeps) result.push_back(item);
    }
  });
}

constexpr Filter kSequenceFilters[] = {
    {"batch", filter_batch},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"last", filter_last},
    {"list", filter_list},
    {"map", filter_map, true},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"reject", filter_select<false, false>, true},
    {"rejectattr", filter_select<false, true>, true},
    {"reverse", filter_reverse},
    {"select", filter_select<true, false>, true},
    {"selectattr", filter_select<true, true>, true},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

}  // namespace

std::span<const Filter> sequence_filters() { return kSequenceFilters; }

}  // namespace trtmc::jinja
