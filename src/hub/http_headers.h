// The header lines of an HTTP response, one after the other as they come.
#pragma once

#include <string_view>

#include "hub/transport.h"

namespace trtmc {

// Takes one line into `response`: a status line begins it anew, since a proxy's answer or
// "100 Continue" comes before the response that counts; "Name: value" is a header; anything else is
// passed over. The line may have its end.
void read_header_line(std::string_view line, FetchResponse& response);

}  // namespace trtmc
