// Which requests an engine can run.
#pragma once

#include "engine/generation.h"
#include "engine/loaded_model.h"

namespace trtmc {

// `longest`: tokens of a sequence. Throws kInvalidArgument for what is wrong, and kUnsupported for
// stop strings where `model` has no tokenizer.
void check_request(const GenerationRequest& request, const EngineModel& model, int longest);

}  // namespace trtmc
