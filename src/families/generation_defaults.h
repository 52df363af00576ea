// What a checkpoint says about generating: stop ids, sampling, the tokens that bracket reasoning
// and tool calls. The same files for every family.
#pragma once

#include <map>
#include <string>

#include "base/token.h"
#include "checkpoint/checkpoint.h"
#include "families/model_family.h"

namespace trtmc {

// The added tokens by text, from tokenizer_config.json's added_tokens_decoder or, without one, from
// tokenizer.json. Empty if there is neither file.
std::map<std::string, TokenId, std::less<>> read_added_tokens(const Checkpoint& checkpoint);

// Stop ids: the union of eos_token_id (a number or a list) in config.json and in
// generation_config.json, and the ids of `extra_stops` where the tokenizer has them. Ids outside of
// the vocabulary, which can't be generated, are left out with a warning.
//
// Sampling: what generation_config.json gives, else SamplingParams' defaults; do_sample false means
// temperature 0. Transformers' implicit top_k of 50 is not copied.
//
// Other members of generation_config.json that would change the answer (num_beams, suppress_tokens,
// …, also unknown ones) are left out, with a warning each.
//
// Throws kInvalidArgument naming the file and the key for values of the wrong kind or out of range.
GenerationDefaults read_generation_defaults(const Checkpoint& checkpoint,
                                            std::span<const std::string_view> extra_stops);

// The generation_config.json that gives these: without warnings, and without what Transformers
// would add of its own.
Json generation_config_json(const GenerationDefaults& defaults);

// "<think>", "</think>" and "<tool_call>", "</tool_call>": each pair if the tokenizer has both.
OutputMarkers read_output_markers(const Checkpoint& checkpoint);

}  // namespace trtmc
