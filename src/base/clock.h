// The time as a value that callers pass in, so that tests and goldens can fix it.
#pragma once

#include <chrono>
#include <ctime>

namespace trtmc {

using SteadyTime = std::chrono::steady_clock::time_point;

inline double seconds_between(SteadyTime start, SteadyTime end) {
  return std::chrono::duration<double>(end - start).count();
}

inline double milliseconds_between(SteadyTime start, SteadyTime end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// The broken-down local time now, as Transformers' strftime_now sees it.
inline std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace trtmc
