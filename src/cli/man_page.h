// trtmc(1), the manual page, made of what --help says.
#pragma once

#include <string>

#include "cli/command_description.h"

namespace trtmc {

// In the man macros that groff and mandoc both know. `version` stands in the page's footer.
std::string man_page(const ProgramDescription& program, const std::string& version);

}  // namespace trtmc
