#include "text/jinja_loop.h"

#include <fmt/format.h>

#include "text/jinja_operators.h"

namespace trtmc::jinja {
namespace {

// loop.cycle or loop.changed as a value.
class LoopMethod : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}

  std::string_view type_name() const override { return "method"; }
  std::string repr() const override {
    return fmt::format("<bound method LoopContext.{}>", cycles_ ? "cycle" : "changed");
  }
  bool callable() const override { return true; }
  Value call(Interpreter&, const Arguments& arguments) override {
    return cycles_ ? loop_->cycle(arguments) : loop_->changed(arguments);
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

}  // namespace

LoopItems::LoopItems(Interpreter& interpreter, const Statement& node, Value source)
    : interpreter_(interpreter),
      node_(node),
      frame_(interpreter.frame_),
      source_(std::move(source)) {
  if (const Sequence* sequence = source_.sequence()) {
    items_ = &sequence->items;
  } else {
    own_ = items_of(interpreter.meter(), source_);
    items_ = &own_;
  }
}

std::optional<Value> LoopItems::filtered() {
  while (taken_ < items_->size()) {
    const Value& item = (*items_)[taken_++];
    interpreter_.meter().spend(1);
    if (!node_.condition) return item;
    const auto outer = std::exchange(interpreter_.frame_, frame_);
    const bool accepted = interpreter_.accepts(node_, item);
    interpreter_.frame_ = outer;
    if (accepted) return item;
  }
  return std::nullopt;
}

std::optional<Value> LoopItems::next() {
  if (ahead_taken_ < ahead_.size()) return ahead_[ahead_taken_++];
  return filtered();
}

int64_t LoopItems::count_left() {
  if (!node_.condition) return static_cast<int64_t>(items_->size() - taken_);
  while (auto item = filtered()) ahead_.push_back(std::move(*item));
  return static_cast<int64_t>(ahead_.size() - ahead_taken_);
}

void LoopItems::clear() {
  own_.clear();
  items_ = &own_;
  taken_ = 0;
  source_ = Value();
  ahead_.clear();
  ahead_taken_ = 0;
  frame_.reset();  // Which holds the loop that holds these items, if a failure left it there.
}

Loop::Loop(Interpreter& interpreter, const Statement& node, Value source,
           std::shared_ptr<Frame> frame, int64_t depth)
    : node_(node),
      items_(interpreter, node, std::move(source)),
      frame_(std::move(frame)),
      depth_(depth) {}

const std::optional<Value>& Loop::peek() {
  if (!peeked_) after_ = items_.next();
  peeked_ = true;
  return after_;
}

std::optional<Value> Loop::advance() {
  auto next = peek();
  peeked_ = false;
  after_.reset();
  if (!next) return std::nullopt;
  ++index_;
  previous_ = std::exchange(current_, next);
  return next;
}

void Loop::finish() {
  if (!node_.condition) length();
  items_.clear();
  previous_.reset();
  current_.reset();
  after_.reset();
  last_changed_.reset();
}

int64_t Loop::length() {
  if (!length_) {
    const int64_t ahead = peeked_ && after_ ? 1 : 0;
    length_ = items_.count_left() + index_ + 1 + ahead;
  }
  return *length_;
}

std::string Loop::repr() const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, const_cast<Loop*>(this)->length());
}

Value Loop::neighbour(const std::optional<Value>& item, std::string_view which) const {
  if (item) return *item;
  return Value::undefined({{}, {}, fmt::format("there is no {} item", which)});
}

std::optional<Value> Loop::number(std::string_view name) {
  if (name == "index") return index_ + 1;
  if (name == "index0") return index_;
  if (name == "first") return index_ == 0;
  if (name == "last") return !peek().has_value();
  if (name == "length") return length();
  if (name == "revindex") return length() - index_;
  if (name == "revindex0") return length() - index_ - 1;
  if (name == "depth") return depth_ + 1;
  if (name == "depth0") return depth_;
  return std::nullopt;
}

std::optional<Value> Loop::attribute(Interpreter&, std::string_view name) {
  if (auto value = number(name)) return value;
  if (name == "previtem") return neighbour(previous_, "previous");
  if (name == "nextitem") return neighbour(peek(), "next");
  if (name == "cycle" || name == "changed") {
    return Value(
        Value::ObjectPtr(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle")));
  }
  return std::nullopt;
}

Value Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) fail("no items for cycling given");
  return arguments.positional[static_cast<size_t>(index_) % arguments.positional.size()];
}

Value Loop::changed(const Arguments& arguments) {
  bool same = last_changed_ && last_changed_->size() == arguments.positional.size();
  for (size_t i = 0; same && i < arguments.positional.size(); ++i) {
    same = equal((*last_changed_)[i], arguments.positional[i]);
  }
  last_changed_ = arguments.positional;
  return !same;
}

Value Loop::call(Interpreter& interpreter, const Arguments& arguments) {
  if (!frame_) fail("the loop must have the 'recursive' marker to be called");
  const BoundArguments bound(arguments, "loop", {"iterable"}, 1);
  return interpreter.run_recursive_loop(node_, frame_, bound.at(0), depth_ + 1);
}

}  // namespace trtmc::jinja
