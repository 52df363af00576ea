#include "text/jinja_globals.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "text/jinja_arguments.h"
#include "text/jinja_eval.h"
#include "text/jinja_operators.h"
#include "text/jinja_repr.h"
#include "text/jinja_strftime.h"

namespace trtmc::jinja {
namespace {

using Function = Value (*)(Interpreter&, const Arguments&);

class GlobalFunction : public Object {
 public:
  GlobalFunction(std::string_view name, Function function) : name_(name), function_(function) {}

  std::string_view type_name() const override { return "function"; }
  std::string repr() const override { return fmt::format("<function {}>", name_); }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return function_(interpreter, arguments);
  }

 private:
  std::string_view name_;
  Function function_;
};

// cycler(a, b, …): hands its items out in turn.
class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(Value::tuple(std::move(items))) {}

  std::string_view type_name() const override { return "Cycler"; }
  std::string repr() const override { return "<Cycler object>"; }
  Extent extent() const override { return items_.extent(); }
  std::optional<Value> attribute(Interpreter&, std::string_view name) override;

  Value next() {
    Value result = current();
    at_ = (at_ + 1) % items_.tuple()->items.size();
    return result;
  }
  Value reset() {
    at_ = 0;
    return None{};
  }

 private:
  const Value& current() const { return items_.tuple()->items[at_]; }

  Value items_;
  size_t at_ = 0;
};

// cycler.next and cycler.reset as values.
class CyclerMethod : public Object {
 public:
  CyclerMethod(std::shared_ptr<Cycler> cycler, bool resets)
      : cycler_(std::move(cycler)), resets_(resets) {}

  std::string_view type_name() const override { return "method"; }
  std::string repr() const override { return "<bound method of Cycler>"; }
  Extent extent() const override { return cycler_->extent(); }
  bool callable() const override { return true; }
  Value call(Interpreter&, const Arguments&) override {
    return resets_ ? cycler_->reset() : cycler_->next();
  }

 private:
  std::shared_ptr<Cycler> cycler_;
  bool resets_;
};

std::optional<Value> Cycler::attribute(Interpreter&, std::string_view name) {
  if (name == "current") return current();
  if (name != "next" && name != "reset") return std::nullopt;
  return Value(
      Value::ObjectPtr(std::make_shared<CyclerMethod>(shared_from_this(), name == "reset")));
}

// joiner(sep): empty the first time, then the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}

  std::string_view type_name() const override { return "Joiner"; }
  std::string repr() const override { return "<Joiner object>"; }
  Extent extent() const override {
    Extent extent{1, 1};
    extent.add(separator_.extent());
    return extent;
  }
  bool callable() const override { return true; }
  Value call(Interpreter&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value raise_exception(Interpreter&, const Arguments& arguments) {
  const BoundArguments bound(arguments, "raise_exception", {"message"}, 1);
  fail(to_text(bound.at(0)));
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  const BoundArguments bound(arguments, "strftime_now", {"format"}, 1);
  // A directive becomes at most 24 bytes.
  interpreter.meter().make_string(24 * bound.string(0).size());
  return format_time(interpreter.local_time(), bound.string(0));
}

Value range(Interpreter&, const Arguments& arguments) {
  const BoundArguments bound(arguments, "range", {"/start", "/stop", "/step"}, 1);
  Range range{0, bound.integer(0), 1};
  if (bound.find(1)) range = {bound.integer(0), bound.integer(1), bound.integer_or(2, 1)};
  if (range.step == 0) fail("the step of range() must not be zero");
  // Within these bounds the size can be calculated.
  constexpr int64_t kFar = int64_t{1} << 61;
  for (const int64_t bound_value : {range.start, range.stop, range.step}) {
    if (bound_value > kFar || bound_value < -kFar) fail("range() is too big");
  }
  if (range.size() > kMaxRange) {
    fail(fmt::format("range() has {} items, expected at most {}", range.size(), kMaxRange));
  }
  return range;
}

// dict(mapping or pairs, **more).
Dict make_dict(Interpreter& interpreter, const Arguments& arguments, std::string_view function) {
  Dict dict;
  if (arguments.positional.size() > 1) {
    fail(fmt::format("{}() takes at most one positional argument", function));
  }
  const auto set = [&](const Value& key, const Value& value) {
    interpreter.meter().spend(1 + key.extent().weight);
    dict.set(key, value);
  };
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const Dict* other = source.dict()) {
      for (const auto& [key, value] : other->entries()) set(key, value);
    } else {
      for (const Value& pair : items_of(interpreter.meter(), source)) {
        const std::vector<Value> items = items_of(interpreter.meter(), pair);
        if (items.size() != 2) fail(fmt::format("{}() needs pairs", function));
        set(items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) set(name, value);
  return dict;
}

Value dict(Interpreter& interpreter, const Arguments& arguments) {
  return make_dict(interpreter, arguments, "dict");
}

Value name_space(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.make_namespace(make_dict(interpreter, arguments, "namespace"));
}

Value cycler(Interpreter&, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("cycler() needs at least one item");
  return Value::ObjectPtr(std::make_shared<Cycler>(arguments.positional));
}

Value joiner(Interpreter&, const Arguments& arguments) {
  const BoundArguments bound(arguments, "joiner", {"sep"});
  return Value::ObjectPtr(std::make_shared<Joiner>(bound.value_or(0, ", ")));
}

struct Global {
  std::string_view name;
  Value value;
};

Value function(std::string_view name, Function function) {
  return Value::ObjectPtr(std::make_shared<GlobalFunction>(name, function));
}

}  // namespace

Value find_global(std::string_view name) {
  static const Global kGlobals[] = {
      {"raise_exception", function("raise_exception", raise_exception)},
      {"strftime_now", function("strftime_now", strftime_now)},
      {"namespace", function("namespace", name_space)},
      {"range", function("range", range)},
      {"dict", function("dict", dict)},
      {"cycler", function("cycler", cycler)},
      {"joiner", function("joiner", joiner)},
  };
  const auto found = std::find_if(std::begin(kGlobals), std::end(kGlobals),
                                  [&](const Global& global) { return global.name == name; });
  return found == std::end(kGlobals) ? Value() : found->value;
}

}  // namespace trtmc::jinja
