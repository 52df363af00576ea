// What this program was built from, by what.
#pragma once

#include <string>
#include <string_view>

namespace trtmc {

std::string_view program_version();  // "0.1.0"
std::string_view build_id();         // The commit, 12 digits, or "unknown" outside a checkout.
std::string compiler_name();         // "g++ 12.2.0"

}  // namespace trtmc
