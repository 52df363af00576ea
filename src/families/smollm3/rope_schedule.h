// Which layers of a SmolLM3 rotate. The one place that knows.
#pragma once

#include <vector>

#include "base/json.h"

namespace trtmc {

// One entry per layer; true: it has RoPE. From "no_rope_layers", whose name reads backwards (1
// means that the layer DOES rotate), else from "no_rope_layer_interval": every interval-th layer
// does not (4 if that is missing too, as in Transformers).
//
// A list longer than the number of layers is legal, as in Transformers. Throws kInvalidArgument for
// what is no list, a list that is too short, entries other than 0, 1, true and false, and an
// interval below 1.
std::vector<bool> rope_schedule(const JsonCursor& config, int num_layers);

}  // namespace trtmc
