// json.dumps of Python, as Transformers' `tojson` filter calls it.
#pragma once

#include <optional>
#include <string>

#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // Of one level; without it everything stands on one line.
  std::string item_separator = ", ", key_separator = ": ";
};

// Throws a Failure for what JSON has no form for, and for a text longer than kMaxStringBytes.
std::string to_json(Meter& meter, const Value& value, const JsonStyle& style);

}  // namespace trtmc::jinja
