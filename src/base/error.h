// How trtmc fails: Error, its one exception, is part of the public interface (trtmc/values.h). This
// is what goes with it inside.
#pragma once

#include <string_view>
#include <utility>

#include "trtmc/values.h"

namespace trtmc {

// Why something ends that finds no memory: too short a text to need any itself.
inline constexpr std::string_view kOutOfMemory = "out of memory";

// The exit status of a command that ends with `code`.
int exit_status(ErrorCode code);

// The exception that is being handled, as an Error: one as it is, no memory as kExhausted, anything
// else as kInternal. Within a catch block only.
Error current_error();

// Runs `body`; an Error that leaves it gets `context` in front of its message.
template <typename Body>
decltype(auto) with_context(std::string_view context, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw error.within(context);
  }
}

}  // namespace trtmc
