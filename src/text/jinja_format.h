// Python's two ways to format: "%s" % value and "{}".format(value).
#pragma once

#include "text/jinja_arguments.h"
#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

// text % arguments: a tuple's items, a dict's values by name, or one value. Throws a Failure for
// what Python refuses, kUnsupported naming a conversion that we do not do.
Value format_percent(Meter& meter, const String& text, const Value& arguments);

// text.format(…).
Value format_braces(Interpreter& interpreter, const String& text, const Arguments& arguments);

}  // namespace trtmc::jinja
