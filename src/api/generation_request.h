// From what is asked of an answer to the engine's request.
#pragma once

#include <vector>

#include "bundle/manifest.h"
#include "engine/generation.h"
#include "trtmc/trtmc.h"

namespace trtmc {

// The request for `prompt`: sampling as the options say, else the bundle, else built in; the
// bundle's stop ids. Logs what applies and where it comes from. Throws kInvalidArgument for a
// parameter out of its range.
GenerationRequest make_request(const Manifest& manifest, const GenerationOptions& options,
                               std::vector<TokenId> prompt);

}  // namespace trtmc
