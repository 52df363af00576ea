// The statements of a template; its expressions are in jinja_expressions.cc.
#include "text/jinja_eval.h"

#include <fmt/format.h>

#include "text/jinja_globals.h"
#include "text/jinja_level.h"
#include "text/jinja_loop.h"
#include "text/jinja_macro.h"
#include "text/jinja_operators.h"
#include "text/jinja_repr.h"

namespace trtmc::jinja {

Interpreter::Interpreter(const Template& tree, const Dict& variables, const std::tm& local_time,
                         uint64_t max_units)
    : tree_(tree), variables_(variables), local_time_(local_time), meter_(max_units) {}

// Breaks the circles that macros and namespaces can form.
Interpreter::~Interpreter() {
  for (const auto& frame : captured_frames_) frame->slots.clear();
  for (const auto& space : namespaces_) space->attributes.clear();
}

std::string Interpreter::render() {
  try {
    frame_ = make_frame(tree_.function, nullptr);
    enter(tree_.scope);
    run(tree_.body);
  } catch (const Failure& failure) {
    throw located(failure, position_);
  }
  return std::move(root_output_);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (Object* object = callee.object()) {
    const Level level(depth_);
    meter_.spend(1);
    return object->call(*this, arguments);
  }
  if (const Undefined* undefined = callee.undefined()) fail(undefined->message());
  fail(fmt::format("a value of type {} can't be called", callee.type_name()));
}

Value Interpreter::make_namespace(Dict attributes) {
  meter_.spend(8);
  auto space = std::make_shared<Namespace>(Namespace{std::move(attributes)});
  namespaces_.push_back(space);
  return space;
}

std::shared_ptr<Frame> Interpreter::make_frame(const Function& function,
                                               std::shared_ptr<Frame> parent) {
  const auto num_slots = static_cast<size_t>(function.num_slots);
  meter_.spend(8 + num_slots);
  auto frame = std::make_shared<Frame>(Frame{std::vector<Value>(num_slots), std::move(parent)});
  if (function.captured) captured_frames_.push_back(frame);
  return frame;
}

Value& Interpreter::variable(const Place& place) {
  Frame* frame = frame_.get();
  for (int i = 0; i < place.hops; ++i) frame = frame->parent.get();
  return frame->slots[static_cast<size_t>(place.slot)];
}

void Interpreter::enter(const Scope& scope) {
  for (const VariableStart& start : scope) {
    Value& slot = frame_->slots[static_cast<size_t>(start.slot)];
    switch (start.kind) {
      case VariableStart::Kind::kParameter:
        break;
      case VariableStart::Kind::kUnset:
        slot = Value();
        break;
      case VariableStart::Kind::kResolve:
        slot = resolve(start.name);
        break;
      case VariableStart::Kind::kAlias:
        slot = variable(start.source);
        break;
    }
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const VariableStart& start : scope) {
    frame_->slots[static_cast<size_t>(start.slot)] = Value();
  }
}

Value Interpreter::resolve(const std::string& name) {
  if (const Value* value = variables_.find(std::string_view(name))) return *value;
  return find_global(name);
}

Interpreter::Flow Interpreter::run(const Body& body) {
  for (const auto& statement : body) {
    const Flow flow = run(*statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& node) {
  const Level level(depth_);
  meter_.spend(1);
  position_ = node.position;
  switch (node.kind) {
    case StatementKind::kText:
      write(node.text);
      return Flow::kNext;
    case StatementKind::kPrint:
      print(evaluate(*node.value));
      return Flow::kNext;
    case StatementKind::kIf:
      return run_if(node);
    case StatementKind::kFor:
      return run_for(node);
    case StatementKind::kSet:
      assign(*node.target, evaluate(*node.value));
      return Flow::kNext;
    case StatementKind::kSetBlock:
      return run_set_block(node);
    case StatementKind::kWith:
      return run_with(node);
    case StatementKind::kFilterBlock:
      return run_filter_block(node);
    case StatementKind::kGeneration:
      return run_scoped(node.scope, node.body);
    case StatementKind::kMacro:
      variable(node.place) = Value::ObjectPtr(std::make_shared<Macro>(node, frame_));
      return Flow::kNext;
    case StatementKind::kCallBlock:
      run_call_block(node);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Statement& node) {
  for (const Branch& branch : node.branches) {
    if (truthy(evaluate(*branch.condition))) return run(branch.body);
  }
  return run(node.otherwise);
}

Interpreter::Flow Interpreter::run_for(const Statement& node) {
  Value items = evaluate(*node.value);
  position_ = node.value->position;
  if (!node.recursive) return run_for_items(node, std::move(items), nullptr, 0);
  print(run_recursive_loop(node, frame_, items, 0));
  return Flow::kNext;
}

// `outer` is a value, since the caller may pass frame_ itself, which changes here.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Value Interpreter::run_recursive_loop(const Statement& node, std::shared_ptr<Frame> outer,
                                      const Value& items, int64_t depth) {
  const Level level(depth_);
  std::string text;
  const auto caller_frame = std::exchange(frame_, make_frame(node.function, outer));
  std::string* const caller_output = std::exchange(output_, &text);
  run_for_items(node, items, outer, depth);
  output_ = caller_output;
  frame_ = caller_frame;
  return text;
}

Interpreter::Flow Interpreter::run_for_items(const Statement& node, Value items,
                                             const std::shared_ptr<Frame>& outer, int64_t depth) {
  struct Finish {
    std::shared_ptr<Loop> loop;
    ~Finish() {
      if (loop) loop->finish();
    }
  } finish;
  std::optional<LoopItems> plain;
  if (node.loop_place.slot < 0) {
    plain.emplace(*this, node, std::move(items));
  } else {
    finish.loop = std::make_shared<Loop>(*this, node, std::move(items), outer, depth);
  }
  // As in Jinja, an item whose body breaks or continues does not keep `else` away.
  bool completed = false;
  while (auto item = plain ? plain->next() : finish.loop->advance()) {
    enter(node.scope);
    if (finish.loop) variable(node.loop_place) = Value::ObjectPtr(finish.loop);
    assign(*node.target, std::move(*item));
    const Flow flow = run(node.body);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  leave(node.scope);
  return completed ? Flow::kNext : run_scoped(node.otherwise_scope, node.otherwise);
}

bool Interpreter::accepts(const Statement& node, const Value& item) {
  enter(node.condition_scope);
  assign(*node.condition_target, item);
  const bool accepted = truthy(evaluate(*node.condition));
  leave(node.condition_scope);
  return accepted;
}

Interpreter::Flow Interpreter::run_scoped(const Scope& scope, const Body& body) {
  enter(scope);
  const Flow flow = run(body);
  leave(scope);
  return flow;
}

Interpreter::Flow Interpreter::run_with(const Statement& node) {
  // Each value is seen by no target but its own.
  std::vector<Value> values;
  for (const auto& value : node.values) values.push_back(evaluate(*value));
  enter(node.scope);
  for (size_t i = 0; i < values.size(); ++i) assign(*node.targets[i], std::move(values[i]));
  const Flow flow = run(node.body);
  leave(node.scope);
  return flow;
}

Interpreter::Flow Interpreter::run_captured(const Body& body, std::string& text) {
  std::string* const outer = std::exchange(output_, &text);
  const Flow flow = run(body);
  output_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::run_set_block(const Statement& node) {
  std::string text;
  enter(node.scope);
  const Flow flow = run_captured(node.body, text);
  if (flow == Flow::kNext) {
    Value value(std::move(text));
    if (node.value) value = evaluate_filter(*node.value, &value);
    assign(*node.target, std::move(value));
  }
  leave(node.scope);
  return flow;
}

Interpreter::Flow Interpreter::run_filter_block(const Statement& node) {
  std::string text;
  enter(node.scope);
  const Flow flow = run_captured(node.body, text);
  if (flow == Flow::kNext) {
    const Value value(std::move(text));
    print_string(evaluate_filter(*node.value, &value));
  }
  leave(node.scope);
  return flow;
}

void Interpreter::run_call_block(const Statement& node) {
  const Value caller = Value::ObjectPtr(std::make_shared<Macro>(node, frame_));
  print_string(evaluate_call(*node.value, &caller));
}

void Interpreter::print_string(const Value& value) {
  if (!value.string()) {
    fail(fmt::format("this block prints strings only, not a value of type {}", value.type_name()));
  }
  print(value);
}

void Interpreter::print(const Value& value) {
  if (const String* text = value.string()) {
    write(text->text);
  } else {
    meter_.spend(value.extent().weight);
    write(to_text(value));
  }
}

void Interpreter::write(std::string_view text) {
  if (text.size() > kMaxOutputBytes - output_->size()) fail_limit("the template prints too much");
  meter_.spend_bytes(text.size());
  *output_ += text;
}

void Interpreter::assign(const Expression& target, Value value) {
  if (target.kind == ExpressionKind::kName) {
    variable(target.place) = std::move(value);
  } else if (target.kind == ExpressionKind::kNamespace) {
    Namespace* space = variable(target.place).name_space();
    position_ = target.position;
    if (!space) fail(fmt::format("'{}' is no namespace", target.name));
    space->attributes.set(target.attribute, std::move(value));
  } else {
    position_ = target.position;
    std::vector<Value> items = items_of(meter_, value);
    if (items.size() != target.operands.size()) {
      fail(fmt::format("{} values to unpack, expected {}", items.size(), target.operands.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(*target.operands[i], std::move(items[i]));
  }
}

}  // namespace trtmc::jinja
