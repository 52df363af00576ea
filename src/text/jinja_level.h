// Counts a level of the interpreter's native recursion. Private to the interpreter.
#pragma once

#include "text/jinja_eval.h"

namespace trtmc::jinja {

class Interpreter::Level {
 public:
  explicit Level(int& depth) : depth_(depth) {
    if (depth_ >= kMaxEvaluationDepth) fail_limit("the template recurses too deeply");
    ++depth_;
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

}  // namespace trtmc::jinja
