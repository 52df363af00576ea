// TRTMC_CHECK(condition, "what does not hold"): a bug of ours. Prints file, line and text, then
// aborts. Bad input is never a check but an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

#define TRTMC_CHECK(condition, text)                                                         \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "trtmc: %s:%d: %s (%s)\n", __FILE__, __LINE__, text, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
