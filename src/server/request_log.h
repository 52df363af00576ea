// A line for every request that is over. Nothing of what it asked or was answered.
#pragma once

#include <string>

#include "server/served_request.h"

namespace trtmc {

enum class RequestLogFormat { kText, kJson };

// Without the line's end. As text:
//   2026-01-31T12:00:00.123Z 127.0.0.1 POST /v1/completions 200 1234B 56.7ms smollm3 12+34 req-…
// What is not known is "-"; an answer that the client has not got whole has "cut" after its bytes.
std::string request_line(const ServedRequest& request, RequestLogFormat format);

}  // namespace trtmc
