// The one entry of each backend that is linked in; its folder is otherwise private.
#pragma once

#include "backends/backend.h"

namespace trtmc {

const Backend& cpu_backend();
const Backend& reference_backend();

}  // namespace trtmc
