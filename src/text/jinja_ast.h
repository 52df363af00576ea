// A template's syntax tree. Built once, then only read.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

struct Filter;
struct Test;

// A variable's place at run time: `slot` in the frame that is `hops` functions further out.
struct Place {
  int hops = 0;
  int slot = -1;
};

enum class ExpressionKind {
  kConstant,         // value
  kInvalidConstant,  // value: fails when it is used, but a larger constant may hide it
  kName,             // name, place
  kNamespace,        // name.attribute as a target of `set`: name, attribute, place
  kList,             // operands
  kTuple,            // operands
  kDict,             // operands: key, value, key, value, …
  kConcat,           // operands, joined by ~
  kUnary,            // name: "-" or "+"; one operand
  kBinary,           // name: the operator; two operands
  kAnd,              // two operands
  kOr,               // two operands
  kNot,              // one operand
  kCompare,          // operands[0] names[0] operands[1] names[1] …
  kConditional,      // operands: condition, value if true, value if false (may be null)
  kAttribute,        // operands[0].name
  kItem,             // operands[0][operands[1]]
  kSlice,            // operands[0][operands[1]:operands[2]:operands[3]], the last three may be null
  kCall,             // operands[0](call)
  kFilter,           // operands[0] | name(call); operands[0] is null in a filter block
  kTest,             // operands[0] is name(call)
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, double_star;  // May be null.
};

struct Expression {
  ExpressionKind kind;
  Position position;
  int depth = 1;  // Of the tree below; bounds the recursion of whoever walks it.
  std::string name, attribute;
  Value value;
  Place place;
  std::vector<ExpressionPtr> operands;
  std::vector<std::string> names;
  CallArguments call;
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};

// What a scope's variables start as.
struct VariableStart {
  enum class Kind {
    kParameter,  // Whoever enters the scope gives it a value.
    kUnset,
    kResolve,  // From the render's input or the globals: name.
    kAlias,    // A copy of an outer variable: source.
  };
  Kind kind;
  int slot;
  std::string name;
  Place source;
};

// The variables of a stretch of template, in the frame of the function that it is part of.
using Scope = std::vector<VariableStart>;

// A root template, macro or call block: what has a frame of its own.
struct Function {
  int num_slots = 0;
  bool captured = false;  // A function inside may outlive a call and see the frame.
};

struct Parameter {
  std::string name;
  int slot = -1;
  ExpressionPtr default_value;  // May be null.
};

enum class StatementKind {
  kText,         // text
  kPrint,        // value
  kIf,           // branches, otherwise
  kFor,          // target, value, condition, body, otherwise, their scopes
  kSet,          // target, value
  kSetBlock,     // target, value: the filters (may be null), body, scope
  kWith,         // targets, values, body, scope
  kFilterBlock,  // value: the filters, body, scope
  kGeneration,   // body, scope
  kMacro,        // name, place, parameters, body, scope, function
  kCallBlock,    // value: the call, parameters, body, scope, function
  kBreak,
  kContinue,
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Statement {
  StatementKind kind;
  Position position;
  std::string name, text;
  ExpressionPtr target, value;
  std::vector<ExpressionPtr> targets, values;
  std::vector<Branch> branches;
  Body body, otherwise;
  Scope scope, otherwise_scope;
  Function function;  // Of kMacro, kCallBlock and a recursive kFor.

  // kFor. The condition has its own copy of the target, as it may be asked about the next item
  // while the body still works on this one.
  ExpressionPtr condition, condition_target;
  Scope condition_scope;
  Place loop_place;  // Of `loop`; slot -1 if nobody asks for it.
  bool recursive = false;

  // kMacro and kCallBlock. The slots are -1 where the body does not ask for these.
  Place place;
  std::vector<Parameter> parameters;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;
};

struct Template {
  Body body;
  Scope scope;
  Function function;
};

}  // namespace trtmc::jinja
