#include "text/jinja_scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja_symbols.h"

namespace trtmc::jinja {
namespace {

void analyze(const Expression* node, Symbols& symbols);

void analyze_call(const CallArguments& call, Symbols& symbols) {
  for (const auto& argument : call.positional) analyze(argument.get(), symbols);
  for (const auto& argument : call.named) analyze(argument.second.get(), symbols);
  analyze(call.star.get(), symbols);
  analyze(call.double_star.get(), symbols);
}

// Declares the names that an expression reads.
void analyze(const Expression* node, Symbols& symbols) {
  if (node == nullptr) return;
  if (node->kind == ExpressionKind::kName) symbols.load(node->name);
  for (const auto& operand : node->operands) analyze(operand.get(), symbols);
  analyze_call(node->call, symbols);
}

// Declares the names that a target writes; a namespace is read.
void analyze_target(const Expression& node, Symbols& symbols, bool as_parameter) {
  if (node.kind == ExpressionKind::kNamespace) {
    symbols.load(node.name);
  } else if (node.kind == ExpressionKind::kTuple) {
    for (const auto& item : node.operands) analyze_target(*item, symbols, as_parameter);
  } else if (as_parameter) {
    symbols.declare_parameter(node.name);
  } else {
    symbols.store(node.name);
  }
}

void analyze(const Body& body, Symbols& symbols);

void analyze_if(const Statement& node, Symbols& symbols) {
  // Jinja holds an elif as an `if` inside the first, whose condition is read in a branch of its
  // own.
  analyze(node.branches[0].condition.get(), symbols);
  Symbols first = symbols.branch();
  analyze(node.branches[0].body, first);

  Symbols others = symbols.branch();
  for (size_t i = 1; i < node.branches.size(); ++i) {
    analyze(node.branches[i].condition.get(), others);
    Symbols branch = others.branch();
    analyze(node.branches[i].body, branch);
    others.merge_branches({&branch});
  }

  Symbols otherwise = symbols.branch();
  analyze(node.otherwise, otherwise);
  symbols.merge_branches({&first, &others, &otherwise});
}

// Declares what a statement reads and writes in the scope that it stands in; inner scopes come
// later.
void analyze(const Statement& node, Symbols& symbols) {
  switch (node.kind) {
    case StatementKind::kIf:
      return analyze_if(node, symbols);
    case StatementKind::kSet:
      analyze(node.value.get(), symbols);
      return analyze_target(*node.target, symbols, false);
    case StatementKind::kSetBlock:
      return analyze_target(*node.target, symbols, false);
    case StatementKind::kMacro:
      return symbols.store(node.name);
    case StatementKind::kWith:
      for (const auto& value : node.values) analyze(value.get(), symbols);
      return;
    default:  // What is printed, looped over, called, or passed to the filters of a block.
      return analyze(node.value.get(), symbols);
  }
}

void analyze(const Body& body, Symbols& symbols) {
  for (const auto& statement : body) analyze(*statement, symbols);
}

// Whether a body, however deep, reads one of the names that mean something special there. A name
// that is written first counts no more.
class SpecialNames {
 public:
  explicit SpecialNames(std::set<std::string> wanted) : wanted_(std::move(wanted)) {}

  bool used(const std::string& name) const { return used_.contains(name); }

  void visit(const Body& body) {
    for (const auto& statement : body) visit(*statement);
  }

 private:
  void visit(const Statement& node) {
    visit_target(node.target.get());
    for (const auto& target : node.targets) visit_target(target.get());
    for (const auto& parameter : node.parameters) wanted_.erase(parameter.name);
    for (const auto& parameter : node.parameters) visit(parameter.default_value.get());
    visit(node.value.get());
    for (const auto& value : node.values) visit(value.get());
    for (const auto& branch : node.branches) {
      visit(branch.condition.get());
      visit(branch.body);
    }
    visit(node.body);
    visit(node.otherwise);
    visit(node.condition.get());
  }

  void visit(const Expression* node) {
    if (node == nullptr) return;
    if (node->kind == ExpressionKind::kName && wanted_.contains(node->name))
      used_.insert(node->name);
    for (const auto& operand : node->operands) visit(operand.get());
    for (const auto& argument : node->call.positional) visit(argument.get());
    for (const auto& argument : node->call.named) visit(argument.second.get());
    visit(node->call.star.get());
    visit(node->call.double_star.get());
  }

  void visit_target(const Expression* node) {
    if (node == nullptr) return;
    if (node->kind == ExpressionKind::kName) wanted_.erase(node->name);
    for (const auto& item : node->operands) visit_target(item.get());
  }

  std::set<std::string> wanted_, used_;
};

void refuse_loop_as_target(const Expression* target) {
  if (target == nullptr) return;
  if (target->kind == ExpressionKind::kName && target->name == "loop") {
    throw located({"'loop' can't be assigned to within a for loop"}, target->position);
  }
  for (const auto& item : target->operands) refuse_loop_as_target(item.get());
}

void refuse_loop_as_target(const Body& body) {
  for (const auto& statement : body) {
    refuse_loop_as_target(statement->target.get());
    for (const auto& branch : statement->branches) refuse_loop_as_target(branch.body);
    refuse_loop_as_target(statement->body);
    refuse_loop_as_target(statement->otherwise);
  }
}

// The second walk: gives the names of one scope their places, and opens the scopes inside.
class Resolver {
 public:
  void resolve(Body& body, const Symbols& symbols) {
    for (const auto& statement : body) resolve(*statement, symbols);
  }

 private:
  void resolve(Expression* node, const Symbols& symbols) {
    if (node == nullptr) return;
    if (node->kind == ExpressionKind::kName || node->kind == ExpressionKind::kNamespace) {
      node->place = symbols.place(node->name);
    }
    for (const auto& operand : node->operands) resolve(operand.get(), symbols);
    for (const auto& argument : node->call.positional) resolve(argument.get(), symbols);
    for (const auto& argument : node->call.named) resolve(argument.second.get(), symbols);
    resolve(node->call.star.get(), symbols);
    resolve(node->call.double_star.get(), symbols);
  }

  void resolve(Statement& node, const Symbols& symbols) {
    switch (node.kind) {
      case StatementKind::kIf:
        for (auto& branch : node.branches) {
          resolve(branch.condition.get(), symbols);
          resolve(branch.body, symbols);
        }
        return resolve(node.otherwise, symbols);
      case StatementKind::kFor:
        return resolve_for(node, symbols);
      case StatementKind::kMacro:
        node.place = symbols.place(node.name);
        return resolve_function(node, symbols);
      case StatementKind::kCallBlock:
        resolve(node.value.get(), symbols);
        return resolve_function(node, symbols);
      case StatementKind::kWith:
        return resolve_with(node, symbols);
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock:
      case StatementKind::kGeneration:
        return resolve_block(node, symbols);
      default:
        resolve(node.target.get(), symbols);
        return resolve(node.value.get(), symbols);
    }
  }

  void resolve_block(Statement& node, const Symbols& symbols) {
    Symbols inner(symbols.function(), &symbols);
    analyze(node.value.get(), inner);
    analyze(node.body, inner);
    node.scope = inner.scope();
    resolve(node.target.get(), symbols);
    resolve(node.value.get(), inner);
    resolve(node.body, inner);
  }

  void resolve_with(Statement& node, const Symbols& symbols) {
    for (const auto& value : node.values) resolve(value.get(), symbols);
    Symbols inner(symbols.function(), &symbols);
    for (const auto& target : node.targets) analyze_target(*target, inner, true);
    analyze(node.body, inner);
    node.scope = inner.scope();
    for (const auto& target : node.targets) resolve(target.get(), inner);
    resolve(node.body, inner);
  }

  void resolve_for(Statement& node, const Symbols& symbols) {
    refuse_loop_as_target(node.target.get());
    refuse_loop_as_target(node.body);
    refuse_loop_as_target(node.otherwise);
    resolve(node.value.get(), symbols);
    FunctionContext own{node.function, symbols.function().level + 1};
    FunctionContext& function = node.recursive ? own : symbols.function();
    if (node.recursive) symbols.function().function.captured = true;

    SpecialNames special({"loop"});
    special.visit(node.body);
    Symbols loop(function, &symbols);
    if (node.recursive || special.used("loop"))
      node.loop_place.slot = loop.declare_parameter("loop");
    analyze_target(*node.target, loop, true);
    analyze(node.body, loop);
    node.scope = loop.scope();
    resolve(node.target.get(), loop);
    resolve(node.body, loop);

    Symbols otherwise(function, &symbols);
    analyze(node.otherwise, otherwise);
    node.otherwise_scope = otherwise.scope();
    resolve(node.otherwise, otherwise);

    if (!node.condition) return;
    Symbols condition(function, &symbols);
    analyze_target(*node.condition_target, condition, true);
    analyze(node.condition.get(), condition);
    node.condition_scope = condition.scope();
    resolve(node.condition_target.get(), condition);
    resolve(node.condition.get(), condition);
  }

  void resolve_function(Statement& node, const Symbols& symbols) {
    symbols.function().function.captured = true;
    FunctionContext function{node.function, symbols.function().level + 1};
    Symbols inner(function, &symbols);
    SpecialNames special({"caller", "kwargs", "varargs"});
    special.visit(node.body);
    for (Parameter& parameter : node.parameters) {
      parameter.slot = inner.declare_parameter(parameter.name);
    }
    const auto declare_if_used = [&](const std::string& name) {
      const auto same = [&](const Parameter& parameter) { return parameter.name == name; };
      const bool given = std::any_of(node.parameters.begin(), node.parameters.end(), same);
      return special.used(name) && !given ? inner.declare_parameter(name) : -1;
    };
    node.caller_slot = declare_if_used("caller");
    node.kwargs_slot = declare_if_used("kwargs");
    node.varargs_slot = declare_if_used("varargs");
    for (const Parameter& parameter : node.parameters) {
      analyze(parameter.default_value.get(), inner);
    }
    analyze(node.body, inner);
    node.scope = inner.scope();
    for (const Parameter& parameter : node.parameters) {
      resolve(parameter.default_value.get(), inner);
    }
    resolve(node.body, inner);
  }
};

}  // namespace

void resolve_names(Template& tree) {
  FunctionContext function{tree.function, 0};
  Symbols root(function, nullptr);
  analyze(tree.body, root);
  tree.scope = root.scope();
  Resolver().resolve(tree.body, root);
}

}  // namespace trtmc::jinja
