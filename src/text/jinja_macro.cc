#include "text/jinja_macro.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

void bind_named(const Interpreter::Macro& macro, const Arguments& arguments, Frame& frame) {
  const Statement& node = macro.node;
  Dict rest;
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find_if(node.parameters.begin(), node.parameters.end(),
                                    [&name = name](const Parameter& p) { return p.name == name; });
    if (found != node.parameters.end()) {
      Value& slot = frame.slots[static_cast<size_t>(found->slot)];
      if (slot.is_set()) fail(fmt::format("macro '{}' is given '{}' twice", macro.name(), name));
      slot = value;
    } else if (name == "caller" && node.caller_slot >= 0) {
      frame.slots[static_cast<size_t>(node.caller_slot)] = value;
    } else if (node.kwargs_slot >= 0) {
      rest.set(name, value);
    } else {
      fail(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name(), name));
    }
  }
  if (node.kwargs_slot >= 0) frame.slots[static_cast<size_t>(node.kwargs_slot)] = std::move(rest);
}

// Puts the arguments into the frame's slots; what is not given stays unset.
void bind(const Interpreter::Macro& macro, const Arguments& arguments, Frame& frame) {
  const Statement& node = macro.node;
  const size_t count = std::min(arguments.positional.size(), node.parameters.size());
  for (size_t i = 0; i < count; ++i) {
    frame.slots[static_cast<size_t>(node.parameters[i].slot)] = arguments.positional[i];
  }
  if (node.varargs_slot >= 0) {
    frame.slots[static_cast<size_t>(node.varargs_slot)] =
        Value::tuple({arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                      arguments.positional.end()});
  } else if (arguments.positional.size() > count) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name(),
                     node.parameters.size()));
  }
  if (node.caller_slot >= 0) {
    frame.slots[static_cast<size_t>(node.caller_slot)] =
        Value::undefined({{}, {}, "no caller defined"});
  }
  bind_named(macro, arguments, frame);
}

}  // namespace

std::string Interpreter::Macro::repr() const {
  return fmt::format("<Macro {}>",
                     node.kind == StatementKind::kMacro ? repr_string(node.name) : "anonymous");
}

Value Interpreter::Macro::call(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.call_macro(*this, arguments);
}

std::optional<Value> Interpreter::Macro::attribute(Interpreter&, std::string_view attribute) {
  if (attribute == "name") {
    return node.kind == StatementKind::kMacro ? Value(node.name) : Value(None{});
  }
  if (attribute == "arguments") {
    std::vector<Value> names;
    for (const Parameter& parameter : node.parameters) names.emplace_back(parameter.name);
    return Value::tuple(std::move(names));
  }
  if (attribute == "catch_kwargs") return node.kwargs_slot >= 0;
  if (attribute == "catch_varargs") return node.varargs_slot >= 0;
  if (attribute == "caller") return node.caller_slot >= 0;
  return std::nullopt;
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Statement& node = macro.node;
  const Position position = position_;
  const auto outer_frame = std::exchange(frame_, make_frame(node.function, macro.outer));
  bind(macro, arguments, *frame_);
  enter(node.scope);
  for (const Parameter& parameter : node.parameters) {
    if (frame_->slots[static_cast<size_t>(parameter.slot)].is_set()) continue;
    Value value =
        parameter.default_value
            ? evaluate(*parameter.default_value)
            : Value::undefined(
                  {{}, {}, fmt::format("parameter '{}' was not provided", parameter.name)});
    frame_->slots[static_cast<size_t>(parameter.slot)] = std::move(value);
  }
  std::string text;
  run_captured(node.body, text);
  frame_ = outer_frame;
  position_ = position;
  return text;
}

}  // namespace trtmc::jinja
