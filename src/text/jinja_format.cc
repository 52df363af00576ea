#include "text/jinja_format.h"
namespace trtmc::jinja {
Value format_percent(Meter&, const String&, const Value&) {
  fail_unsupported("formatting a string with % is not supported");
}
Value format_braces(Interpreter&, const String&, const Arguments&) {
  fail_unsupported("the method str.format() is not supported");
}
}  // namespace trtmc::jinja
