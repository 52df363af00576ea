// The expressions of a template.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_level.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_repr.h"
#include "text/jinja_tests.h"

namespace trtmc::jinja {

Value Interpreter::evaluate(const Expression& node) {
  const Level level(depth_);
  meter_.spend(1);
  position_ = node.position;
  const auto operand = [&](size_t i) { return evaluate(*node.operands[i]); };
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.value;
    case ExpressionKind::kInvalidConstant:
      if (!folding_) fail("a constant is infinite or no number, which jinja2 has no code for");
      return node.value;
    case ExpressionKind::kName:
    case ExpressionKind::kNamespace:
      return evaluate_name(node);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_sequence(node);
    case ExpressionKind::kDict:
      return evaluate_dict(node);
    case ExpressionKind::kConcat:
      return evaluate_concat(node);
    case ExpressionKind::kUnary: {
      const Value value = operand(0);
      position_ = node.position;
      return unary(node.name, value);
    }
    case ExpressionKind::kBinary: {
      const Value left = operand(0), right = operand(1);
      position_ = node.position;
      return binary(meter_, node.name, left, right);
    }
    case ExpressionKind::kAnd: {
      Value left = operand(0);
      return truthy(left) ? operand(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = operand(0);
      return truthy(left) ? left : operand(1);
    }
    case ExpressionKind::kNot:
      return !truthy(operand(0));
    case ExpressionKind::kCompare:
      return evaluate_compare(node);
    case ExpressionKind::kConditional:
      return evaluate_conditional(node);
    case ExpressionKind::kAttribute: {
      const Value value = operand(0);
      position_ = node.position;
      return attribute(*this, value, node.name);
    }
    case ExpressionKind::kItem: {
      const Value value = operand(0), index = operand(1);
      position_ = node.position;
      return item(*this, value, index);
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(node);
    case ExpressionKind::kCall:
      return evaluate_call(node, nullptr);
    case ExpressionKind::kFilter:
      return evaluate_filter(node, nullptr);
    case ExpressionKind::kTest:
      return evaluate_test(node);
  }
  return None{};
}

Value Interpreter::evaluate_name(const Expression& node) {
  if (folding_) fail("a variable is no constant");
  const Value& value = variable(node.place);
  return value.is_set() ? value : Value::undefined({node.name, {}, {}});
}

Value Interpreter::evaluate_sequence(const Expression& node) {
  std::vector<Value> items;
  items.reserve(node.operands.size());
  for (const auto& operand : node.operands) items.push_back(evaluate(*operand));
  position_ = node.position;
  return node.kind == ExpressionKind::kList ? Value::list(std::move(items))
                                            : Value::tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const Expression& node) {
  Dict dict;
  for (size_t i = 0; i < node.operands.size(); i += 2) {
    Value key = evaluate(*node.operands[i]);
    Value value = evaluate(*node.operands[i + 1]);
    position_ = node.position;
    meter_.spend(key.extent().weight);
    dict.set(std::move(key), std::move(value));
  }
  return dict;
}

Value Interpreter::evaluate_concat(const Expression& node) {
  std::string text;
  for (const auto& operand : node.operands) {
    const Value value = evaluate(*operand);
    position_ = node.position;
    const String* part = value.string();
    meter_.make_string(text.size() + (part ? part->text.size() : 0));
    if (part) {
      text += part->text;
    } else {
      meter_.spend(value.extent().weight);
      text += to_text(value);
    }
  }
  meter_.make_string(text.size());
  return text;
}

Value Interpreter::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.operands[0]);
  for (size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(*node.operands[i + 1]);
    position_ = node.position;
    if (!compared(meter_, node.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_conditional(const Expression& node) {
  if (truthy(evaluate(*node.operands[0]))) return evaluate(*node.operands[1]);
  if (node.operands[2]) return evaluate(*node.operands[2]);
  if (folding_) fail("undefined is no constant");
  return Value::undefined({{}, {}, "the inline if-expression was false and has no else"});
}

namespace {

// Whether Python can slice the value, or fails for another reason than a type.
bool fits_slice(const Value& value, const Value (&bounds)[3]) {
  if (value.is_undefined()) return true;
  const Sequence* items = value.sequence();
  const bool sliceable =
      value.string() || value.range() || (items && items->kind <= Sequence::Kind::kTuple);
  if (!sliceable) return false;
  if (bounds[2].as_integer() == 0) return true;
  return std::all_of(std::begin(bounds), std::end(bounds), [](const Value& bound) {
    return !bound.is_set() || bound.is_none() || bound.as_integer() || bound.big_integer();
  });
}

}  // namespace

Value Interpreter::evaluate_slice(const Expression& node) {
  const Value value = evaluate(*node.operands[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (node.operands[i + 1]) bounds[i] = evaluate(*node.operands[i + 1]);
  }
  position_ = node.position;
  // A constant is sliced by a look-up that takes a wrong type for a missing item.
  if (folding_ && !fits_slice(value, bounds))
    return Value::undefined({"slice", value.type_name(), {}});
  return slice(meter_, value, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& call) {
  Arguments arguments;
  arguments.positional.reserve(call.positional.size());
  for (const auto& argument : call.positional) arguments.positional.push_back(evaluate(*argument));
  for (const auto& [name, value] : call.named) arguments.named.emplace_back(name, evaluate(*value));
  if (call.star) {
    for (Value& value : items_of(meter_, evaluate(*call.star))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  if (call.double_star) {
    const Value more = evaluate(*call.double_star);
    const Dict* dict = more.dict();
    if (!dict) fail(fmt::format("** needs a dict, not a value of type {}", more.type_name()));
    meter_.make_items(dict->size());
    for (const auto& [key, value] : dict->entries()) {
      if (!key.string()) fail("the keys of a dict behind ** must be strings");
      arguments.named.emplace_back(key.string()->text, value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node, const Value* caller) {
  if (folding_) fail("what a call returns is no constant");
  const Expression& callee = *node.operands[0];
  // Most calls are of methods, which need no value of their own then.
  const bool of_attribute = callee.kind == ExpressionKind::kAttribute;
  const Value target = evaluate(of_attribute ? *callee.operands[0] : callee);
  const Method* method = of_attribute ? find_method(target, callee.name) : nullptr;
  Value function = target;
  if (of_attribute && !method) {
    position_ = callee.position;
    function = attribute(*this, target, callee.name);
  }
  Arguments arguments = evaluate_arguments(node.call);
  if (caller) arguments.named.emplace_back("caller", *caller);
  position_ = node.position;
  return method ? call_method(*this, *method, target, arguments) : call(function, arguments);
}

Value Interpreter::evaluate_filter(const Expression& node, const Value* input) {
  if (folding_ && node.filter->contextual) fail("what this filter returns is no constant");
  const Expression* inner = node.operands[0].get();
  Value value;
  if (!inner) {
    if (folding_) fail("the input of a block's filter is no constant");
    value = *input;
  } else if (input && inner->kind == ExpressionKind::kFilter) {
    value = evaluate_filter(*inner, input);
  } else {
    value = evaluate(*inner);
  }
  const Arguments arguments = evaluate_arguments(node.call);
  position_ = node.position;
  const Level level(depth_);
  return node.filter->apply(*this, value, arguments);
}

Value Interpreter::evaluate_test(const Expression& node) {
  const Value value = evaluate(*node.operands[0]);
  const Arguments arguments = evaluate_arguments(node.call);
  position_ = node.position;
  return node.test->holds(*this, value, arguments);
}

}  // namespace trtmc::jinja
