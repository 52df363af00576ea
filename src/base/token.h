// The number of a token in a model's vocabulary.
#pragma once

#include <cstdint>

namespace trtmc {

using TokenId = int32_t;

}  // namespace trtmc
