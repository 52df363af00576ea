// Tokens to a syntax tree, with Jinja's grammar and precedence, and with every name resolved to its
// variable.
#pragma once

#include <string_view>

#include "text/jinja_ast.h"

namespace trtmc::jinja {

// Throws Error with line and column: kInvalidArgument for what is no template, kUnsupported naming
// the statement, filter or test that we do not have.
Template parse(std::string_view source);

}  // namespace trtmc::jinja
