// What keeps an untrusted template within bounds, and how the interpreter fails inside: a Failure
// has no place yet; the lexer, the parser and the interpreter add line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"

namespace trtmc::jinja {

// A place in a template's source. Columns count bytes; both count from one.
struct Position {
  int line = 1;
  int column = 1;
};

struct Failure {
  std::string message;
  ErrorCode code = ErrorCode::kInvalidArgument;
  bool is_limit = false;  // One of the limits below: it ends the render at once.
};

[[noreturn]] inline void fail(std::string message) { throw Failure{std::move(message)}; }
[[noreturn]] inline void fail_limit(std::string message) {
  throw Failure{std::move(message), ErrorCode::kInvalidArgument, true};
}
[[noreturn]] inline void fail_unsupported(std::string message) {
  throw Failure{std::move(message), ErrorCode::kUnsupported};
}

// "line 3, column 5: <message>".
Error located(const Failure& failure, Position position);

inline constexpr size_t kMaxSourceBytes = size_t{4} << 20;
inline constexpr int kMaxSyntaxDepth = 200;      // Of nested expressions and statements.
inline constexpr int kMaxEvaluationDepth = 600;  // Of nested evaluations, through macros too.
inline constexpr int kMaxValueDepth = 256;       // Of lists in lists.
inline constexpr size_t kMaxNames = 1000;        // Of a macro's parameters, a call's arguments.
inline constexpr size_t kMaxStringBytes = size_t{64} << 20;
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;
inline constexpr size_t kMaxItems = size_t{1} << 20;  // Of one list or dict that a template makes.
inline constexpr int64_t kMaxRange = 100000;          // As Jinja's sandbox.

// Counts a render's work. One unit is about one step of the interpreter, 64 bytes of text looked at
// or made, or one list item; as every allocation is paid for, it bounds memory too.
class Meter {
 public:
  static constexpr uint64_t kMaxUnits = 3'000'000;

  explicit Meter(uint64_t max_units = kMaxUnits) : left_(max_units) {}

  void spend(uint64_t units) {
    if (units > left_) fail_limit("the template needs too many steps");
    left_ -= units;
  }
  void spend_bytes(size_t bytes) { spend(bytes / 64); }  // Copied or compared.
  void spend_text(size_t bytes) { spend(bytes / 8); }    // Looked at one by one.
  // Pays for a string of `bytes` about to be made.
  void make_string(size_t bytes) {
    if (bytes > kMaxStringBytes) fail_limit("a string of the template gets too long");
    spend(2 + bytes / 64);
  }
  // Pays for a list or dict of `count` items about to be made.
  void make_items(size_t count) {
    if (count > kMaxItems) fail_limit("a list of the template gets too long");
    spend(1 + count);
  }

 private:
  uint64_t left_;
};

}  // namespace trtmc::jinja
