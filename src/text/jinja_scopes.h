// Gives every name of a syntax tree its variable, by Jinja's rules: `set` in a loop does not leak
// out of it, branches share the scope around them, macros see what surrounds their definition.
// Source: jinja2/idtracking.py of Jinja 3.1.6, whose odd corners this keeps.
#pragma once

#include "text/jinja_ast.h"

namespace trtmc::jinja {

// Fills in the places, scopes and functions of the tree. Throws Error with line and column.
void resolve_names(Template& tree);

}  // namespace trtmc::jinja
