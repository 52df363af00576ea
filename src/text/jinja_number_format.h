// Numbers and strings laid out by a format specification: what "%08.3f" and "{:>8}" share.
#pragma once

#include <optional>
#include <string>

#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct FormatSpec {
  std::string fill = " ";  // One code point.
  char align = '\0';       // '<', '>', '^', or '=' for padding behind the sign.
  char sign = '-';         // '+' or ' ' for a sign in front of what is not negative.
  bool alternate = false;  // '#'
  char grouping = '\0';    // ',' or '_' between thousands.
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = '\0';  // 's', 'd', 'f', …; none for what suits the value.
};

// A number by `spec`, whose type is one of bdoxXeEfFgG%, or none for a float. The precision of an
// integer is how many digits it has at least. Throws a Failure.
std::string format_number(Meter& meter, const Value& number, const FormatSpec& spec);
// Text by `spec`: cut to the precision, filled up to the width.
std::string format_text(Meter& meter, std::string_view text, const FormatSpec& spec);

}  // namespace trtmc::jinja
