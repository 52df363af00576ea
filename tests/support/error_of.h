// The Error that a piece of code ends with, to look at.
#pragma once

#include <utility>

#include "base/error.h"

namespace trtmc {

// What `body` throws. An error called "no error" if it throws nothing.
template <typename Body>
Error error_of(Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "no error"};
}

}  // namespace trtmc
