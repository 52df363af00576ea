// A macro or the body of a call block as a value. Private to the interpreter.
#pragma once

#include <memory>
#include <string>

#include "text/jinja_eval.h"

namespace trtmc::jinja {

struct Interpreter::Macro : Object {
  Macro(const Statement& statement, std::shared_ptr<Frame> frame)
      : node(statement), outer(std::move(frame)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;

  std::string_view name() const {
    return node.kind == StatementKind::kMacro ? std::string_view(node.name) : "caller";
  }

  const Statement& node;
  std::shared_ptr<Frame> outer;  // What surrounds the definition.
};

}  // namespace trtmc::jinja
