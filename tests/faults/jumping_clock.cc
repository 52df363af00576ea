// Preloaded into a program: its wall clock jumps with every look at it, a day ahead and a day back.
// What is measured by the steady clock must not notice.
#include <dlfcn.h>
#include <sys/time.h>

#include <atomic>
#include <ctime>

namespace {

constexpr time_t kDay = 86'400;

time_t jump() {
  static std::atomic<unsigned> looks{0};
  // Multiplied as Knuth's hash does: not every second look, since a request may take two.
  return (looks++ * 2654435761u) >> 31 == 0 ? kDay : -kDay;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto kReal = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = kReal(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += jump();
  }
  return result;
}

extern "C" int gettimeofday(timeval* time, void* zone) noexcept {
  static const auto kReal = next<int (*)(timeval*, void*)>("gettimeofday");
  const int result = kReal(time, zone);
  if (result == 0) time->tv_sec += jump();
  return result;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
