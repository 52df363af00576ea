// Runs a template. One Interpreter is one render.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_arguments.h"
#include "text/jinja_ast.h"
#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

// The variables of one call of a function.
struct Frame {
  std::vector<Value> slots;
  std::shared_ptr<Frame> parent;  // Of the function that this one was defined in.
};

class Loop;

class Interpreter {
 public:
  // `variables` is what the template's names mean; it hides the globals. `local_time` is what
  // strftime_now shows; `max_units` bounds the work (see Meter). The tree and the variables are
  // borrowed.
  Interpreter(const Template& tree, const Dict& variables, const std::tm& local_time,
              uint64_t max_units = Meter::kMaxUnits);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // The text that the template prints. Throws Error with line and column. Once only.
  std::string render();
  // For jinja_folding.h: what the expression is worth before there are variables, if that is known.
  std::optional<Value> constant(const Expression& node);

  // For filters, methods and functions:
  Meter& meter() { return meter_; }
  const std::tm& local_time() const { return local_time_; }
  Value call(const Value& callee, const Arguments& arguments);
  // A namespace may hold itself, so the render keeps it to empty it in the end.
  Value make_namespace(Dict attributes);

  // For macros and loops:
  struct Macro;
  Value call_macro(const Macro& macro, const Arguments& arguments);
  // One pass over `items` by a recursive loop, as text.
  Value run_recursive_loop(const Statement& node, std::shared_ptr<Frame> outer, const Value& items,
                           int64_t depth);

 private:
  friend class LoopItems;
  enum class Flow { kNext, kBreak, kContinue };

  // Counts a level of native recursion for as long as it lives.
  class Level;

  std::shared_ptr<Frame> make_frame(const Function& function, std::shared_ptr<Frame> parent);
  Value& variable(const Place& place);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  Value resolve(const std::string& name);

  Flow run(const Body& body);
  Flow run(const Statement& node);
  Flow run_if(const Statement& node);
  Flow run_for(const Statement& node);
  Flow run_for_items(const Statement& node, Value items, const std::shared_ptr<Frame>& outer,
                     int64_t depth);
  Flow run_scoped(const Scope& scope, const Body& body);
  Flow run_with(const Statement& node);
  Flow run_set_block(const Statement& node);
  Flow run_filter_block(const Statement& node);
  void run_call_block(const Statement& node);
  // Runs `body` with its output going to `text`.
  Flow run_captured(const Body& body, std::string& text);
  void print(const Value& value);
  // What a filter or call block makes must be a string, as in Jinja.
  void print_string(const Value& value);
  void write(std::string_view text);
  void assign(const Expression& target, Value value);
  bool accepts(const Statement& node, const Value& item);

  Value evaluate(const Expression& node);
  Value evaluate_name(const Expression& node);
  Value evaluate_sequence(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_concat(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_conditional(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_call(const Expression& node, const Value* caller);
  // `input` is what the innermost filter of a filter block gets.
  Value evaluate_filter(const Expression& node, const Value* input);
  Value evaluate_test(const Expression& node);
  Arguments evaluate_arguments(const CallArguments& call);

  const Template& tree_;
  const Dict& variables_;
  std::tm local_time_;
  Meter meter_;
  Position position_;  // Of the node that runs: where a Failure happened.
  int depth_ = 0;
  bool folding_ = false;  // Nothing has a value but constants.
  std::shared_ptr<Frame> frame_;
  std::string root_output_;
  std::string* output_ = &root_output_;
  // What may hold itself, directly or through others.
  std::vector<std::shared_ptr<Frame>> captured_frames_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace trtmc::jinja
