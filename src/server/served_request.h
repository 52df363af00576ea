// What is known of a request once it is over, for the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace trtmc {

struct ServedRequest {
  std::chrono::system_clock::time_point start;  // When its headers were there.
  double duration_ms = 0;                       // Until the last byte of its answer was sent.
  std::string id, client, method, path;         // Empty if it could not be read so far.
  int status = 0;                               // 0: nothing has been answered.
  uint64_t bytes = 0;                           // Of the answer, with its headers.
  bool complete = false;                        // The client has got all of the answer.
  std::string route;  // The pattern of the path that it took; may be empty.
  std::string model;  // That it asked for; may be empty.
  std::optional<int> prompt_tokens, completion_tokens;
};

using ServedRequestLog = std::function<void(const ServedRequest&)>;

}  // namespace trtmc
