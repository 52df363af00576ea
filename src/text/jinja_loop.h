// The items of a for loop, and the `loop` variable. Private to the interpreter.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja_eval.h"

namespace trtmc::jinja {

// Hands out a loop's items one by one; its condition is asked only when an item is wanted, as
// Jinja's generators do.
class LoopItems {
 public:
  LoopItems(Interpreter& interpreter, const Statement& node, Value source);

  std::optional<Value> next();
  // How many are left, which asks the condition about all of them.
  int64_t count_left();
  void clear();

 private:
  std::optional<Value> filtered();

  Interpreter& interpreter_;
  const Statement& node_;
  std::shared_ptr<Frame> frame_;  // In which the condition is asked.
  Value source_;                  // Keeps `items_` alive if it is a list.
  std::vector<Value> own_;
  const std::vector<Value>* items_;
  size_t taken_ = 0;
  std::vector<Value> ahead_;  // Already through the condition.
  size_t ahead_taken_ = 0;
};

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  // `frame` is the one around a recursive loop, null for others.
  Loop(Interpreter& interpreter, const Statement& node, Value source, std::shared_ptr<Frame> frame,
       int64_t depth);

  // Goes on to the next item.
  std::optional<Value> advance();
  // At the end: lets go of the items, so that loops kept by a template form no long chains.
  void finish();

  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;

  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

 private:
  std::optional<Value> number(std::string_view name);
  const std::optional<Value>& peek();
  int64_t length();
  Value neighbour(const std::optional<Value>& item, std::string_view which) const;

  const Statement& node_;
  LoopItems items_;
  std::shared_ptr<Frame> frame_;
  int64_t depth_;
  int64_t index_ = -1;
  std::optional<int64_t> length_;
  std::optional<Value> previous_, current_, after_;
  bool peeked_ = false;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace trtmc::jinja
