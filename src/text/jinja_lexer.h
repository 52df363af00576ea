// A template's source to tokens, with the white space control of Jinja as Transformers configures
// it: trim_blocks and lstrip_blocks on, keep_trailing_newline off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Token {
  enum class Kind {
    kData,           // Text between tags, as it is printed.
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,    // Its value, without quotes and escapes.
    kNumber,    // `value` holds it.
    kOperator,  // `text` is the operator.
    kEnd,
  };
  Kind kind;
  Position position;
  std::string text;
  Value value;
};

// Ends with a kEnd token. Throws Error with line and column.
std::vector<Token> tokenize(std::string_view source);

}  // namespace trtmc::jinja
