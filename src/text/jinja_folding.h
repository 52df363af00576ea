// Works out constant expressions once, as jinja2's optimizer does: mostly for speed, but a template
// can see it. A wrong slice of a constant is undefined in a larger constant expression, which it is
// not at run time; and a constant goes into Python code, where some do not mean what they are.
// Source: as_const() in jinja2/nodes.py, jinja2/optimizer.py and jinja2/compiler.py of Jinja 3.1.6.
#pragma once

#include "text/jinja_ast.h"

namespace trtmc::jinja {

// Folds every expression of a tree whose names are resolved. An expression that fails stays as it
// is, to fail when it is run.
void fold_constants(Template& tree);

}  // namespace trtmc::jinja
