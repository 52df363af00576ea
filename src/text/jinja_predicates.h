// str.isalpha, str.isupper and their like.
#pragma once

#include <string_view>

namespace trtmc::jinja {

bool is_alpha(std::string_view text);
bool is_decimal(std::string_view text);
bool is_digit(std::string_view text);
bool is_numeric(std::string_view text);
bool is_alnum(std::string_view text);
bool is_space(std::string_view text);
bool is_printable(std::string_view text);
bool is_lower(std::string_view text);
bool is_upper(std::string_view text);
bool is_title(std::string_view text);

}  // namespace trtmc::jinja
