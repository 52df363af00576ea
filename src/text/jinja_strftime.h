// Python's datetime.strftime with the names of the C locale, whatever the process' locale is.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace trtmc::jinja {

// Throws a Failure with kUnsupported naming a directive that we do not do.
std::string format_time(const std::tm& time, std::string_view format);

}  // namespace trtmc::jinja
