// Python's str operations on UTF-8: indices count code points, and case, spaces and what is
// printable are as CPython's tables say (see jinja_unicode.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trtmc::jinja {

bool is_ascii(std::string_view text);
size_t count_code_points(std::string_view text);
std::vector<std::string_view> code_points(std::string_view text);
// The byte offset of code point number `index`, or the size if there are not that many.
size_t byte_offset(std::string_view text, size_t index);
// `text` as code points and back.
std::u32string to_utf32(std::string_view text);
std::string to_utf8(std::u32string_view text);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swapcase(std::string_view text);

enum Side { kLeft = 1, kRight = 2, kBoth = 3 };
// str.strip: white space, or the code points that are in `chars`.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> chars = std::nullopt);

// str.split and str.rsplit: at white space, or at `separator`; at most `limit` cuts, -1 for any.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> rsplit(std::string_view text,
                                     std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> splitlines(std::string_view text, bool keep_ends);

// str.replace with at most `limit` replacements, -1 for any. `size_of_result` says how large the
// result gets.
size_t count_occurrences(std::string_view text, std::string_view part);
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t limit);

// markupsafe.escape.
std::string escape_html(std::string_view text);

// repr() of a str, repr() of a float.
std::string repr_string(std::string_view text);
std::string repr_float(double value);
// What is not ASCII as escapes, as ascii() has it in a repr().
std::string ascii(std::string_view text);
// float(text) and int(text, 10) of Python, white space and underscores included.
std::optional<double> parse_float(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);

}  // namespace trtmc::jinja
