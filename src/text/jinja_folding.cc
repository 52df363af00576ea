#include "text/jinja_folding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"

namespace trtmc::jinja {
namespace {

using Kind = ExpressionKind;

// For all constants of a template together; what costs more is left to the render.
constexpr uint64_t kFoldingUnits = 2'000'000;

bool may_be_constant(const ExpressionPtr& node);

bool may_be_constant(const CallArguments& call) {
  const auto named_may = [](const auto& named) { return may_be_constant(named.second); };
  return std::all_of(call.positional.begin(), call.positional.end(),
                     [](const ExpressionPtr& node) { return may_be_constant(node); }) &&
         std::all_of(call.named.begin(), call.named.end(), named_may) &&
         may_be_constant(call.star) && may_be_constant(call.double_star);
}

// A quick no for most expressions. What is not there, as the end of a slice, may be constant.
bool may_be_constant(const ExpressionPtr& node) {
  if (!node) return true;
  const auto operand_may = [&](size_t i) { return may_be_constant(node->operands[i]); };
  switch (node->kind) {
    case Kind::kName:
    case Kind::kNamespace:
    case Kind::kCall:
      return false;
    case Kind::kAnd:
    case Kind::kOr:
      return operand_may(0);
    case Kind::kConditional:
      return operand_may(0) && (operand_may(1) || operand_may(2));
    case Kind::kFilter:
      if (!node->operands[0] || node->filter->contextual) return false;
      [[fallthrough]];
    default:
      return may_be_constant(node->call) &&
             std::all_of(node->operands.begin(), node->operands.end(),
                         [](const ExpressionPtr& operand) { return may_be_constant(operand); });
  }
}

// Whether jinja2 can write the value as Python code.
bool has_code(const Value& value) {
  if (const Sequence* items = value.sequence()) {
    return items->kind <= Sequence::Kind::kTuple && !items->is_group &&
           std::all_of(items->items.begin(), items->items.end(), has_code);
  }
  if (const Dict* dict = value.dict()) {
    return std::all_of(
        dict->entries().begin(), dict->entries().end(),
        [](const Dict::Entry& entry) { return has_code(entry.first) && has_code(entry.second); });
  }
  return value.is_none() || value.string() || value.range() || value.as_real();
}

// Whether the code has a name in it that Python does not know: inf or nan.
bool has_unknown_name(const Value& value) {
  if (const double* real = value.real()) return !std::isfinite(*real);
  if (const Sequence* items = value.sequence()) {
    return std::any_of(items->items.begin(), items->items.end(), has_unknown_name);
  }
  const Dict* dict = value.dict();
  return dict != nullptr &&
         std::any_of(dict->entries().begin(), dict->entries().end(), [](const Dict::Entry& entry) {
           return has_unknown_name(entry.first) || has_unknown_name(entry.second);
         });
}

// Whether the code of `node` as the base of a power begins with a minus. Of a constant power there
// is no such code.
bool has_bare_minus(const Expression& node, const Expression& exponent) {
  if (node.kind != Kind::kConstant || exponent.kind == Kind::kConstant) return false;
  const int64_t* integer = node.value.integer();
  const double* real = node.value.real();
  return (integer && *integer < 0) || (real && std::signbit(*real));
}

class Folder {
 public:
  explicit Folder(const Template& tree)
      : interpreter_(tree, no_variables_, std::tm{}, kFoldingUnits) {}

  void fold(Body& body) {
    for (const auto& statement : body) fold(*statement);
  }

 private:
  void fold(Statement& node) {
    fold(node.value);
    for (const auto& value : node.values) fold(value);
    fold(node.condition);
    for (const Parameter& parameter : node.parameters) fold(parameter.default_value);
    for (Branch& branch : node.branches) {
      fold(branch.condition);
      fold(branch.body);
    }
    fold(node.body);
    fold(node.otherwise);
    if (node.kind == StatementKind::kPrint) fold_print(node);
  }

  // What is printed needs no code, only text.
  void fold_print(Statement& node) {
    if (!may_be_constant(node.value)) return;
    Expression text;
    text.kind = Kind::kConcat;
    text.operands.push_back(std::move(node.value));
    const auto value = interpreter_.constant(text);
    node.value = std::move(text.operands[0]);
    if (!value) return;
    node.kind = StatementKind::kText;
    node.text = value->string()->text;
  }

  void fold(const ExpressionPtr& node) {
    if (!node) return;
    for (const auto& operand : node->operands) fold(operand);
    for (const auto& argument : node->call.positional) fold(argument);
    for (const auto& argument : node->call.named) fold(argument.second);
    fold(node->call.star);
    fold(node->call.double_star);
    if (may_be_constant(node)) {
      const auto value = interpreter_.constant(*node);
      if (value && has_code(*value)) return replace(*node, *value);
    }
    if (node->kind == Kind::kBinary && node->name == "**" &&
        has_bare_minus(*node->operands[0], *node->operands[1])) {
      regroup(*node);
    }
  }

  static void replace(Expression& node, const Value& value) {
    node.kind = has_unknown_name(value) ? Kind::kInvalidConstant : Kind::kConstant;
    node.value = value;
    node.operands.clear();
    node.call = {};
  }

  static Value without_minus(const Value& negative) {
    if (const double* real = negative.real()) return -*real;
    const int64_t integer = *negative.integer();
    if (integer == std::numeric_limits<int64_t>::min()) {
      return Value::big_integer("9223372036854775808");
    }
    return -integer;
  }

  // The code of a negative constant has no parentheses: -2 ** x is -(2 ** x) to Python.
  static void regroup(Expression& power) {
    auto inner = std::make_unique<Expression>(std::move(power));
    Expression& base = *inner->operands[0];
    base.value = without_minus(base.value);
    power = Expression();
    power.kind = Kind::kUnary;
    power.name = std::string(1, '-');  // g++ 12 warns of what assigning a literal would do.
    power.position = inner->position;
    power.depth = inner->depth + 1;
    power.operands.push_back(std::move(inner));
  }

  const Dict no_variables_;
  Interpreter interpreter_;
};

}  // namespace

void fold_constants(Template& tree) { Folder(tree).fold(tree.body); }

std::optional<Value> Interpreter::constant(const Expression& node) {
  folding_ = true;
  try {
    Value value = evaluate(node);
    meter_.spend(value.extent().weight);  // Of whoever walks through it.
    return value;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

}  // namespace trtmc::jinja
