// JSON text: what parses must print and parse back to the same tree.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto json = trtmc::Json::parse({reinterpret_cast<const char*>(data), size});
    if (!(trtmc::Json::parse(json.dump()) == json)) std::abort();
    if (!(trtmc::Json::parse(json.dump(2)) == json)) std::abort();
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
  return 0;
}
