#include "text/split_regex.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trtmc {

SplitRegex::SplitRegex(std::string_view pattern) {
  throw Error(ErrorCode::kUnsupported,
              fmt::format("split pattern \"{}\" is not one of those that can be scanned", pattern));
}

void SplitRegex::for_each_match(std::string_view, FunctionRef<void(size_t, size_t)>) const {}

}  // namespace trtmc
