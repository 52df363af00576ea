// Split patterns of tokenizer.json are written for Oniguruma with its Ruby syntax and Unicode 16.0.
// PCRE2 has other tables, other defaults and other readings of some signs. Private to text/.
#pragma once

#include <string>
#include <string_view>

namespace trtmc {

// A PCRE2 pattern that matches exactly what `pattern` matches in Oniguruma: classes become explicit
// code points, (?i:…) becomes the letters it folds to, groups capture nothing. Throws kUnsupported
// naming what has no sure counterpart, or kInvalidArgument for bad syntax, with the byte.
// Source: Oniguruma 6.9.10, doc/RE, ONIG_SYNTAX_RUBY.
std::string pcre2_of_oniguruma(std::string_view pattern);

}  // namespace trtmc
