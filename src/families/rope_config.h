// Rotary settings of a Transformers configuration, in both of its styles: "rope_theta" with
// "rope_scaling" (Transformers 4) and "rope_parameters" (5). Shared by the families.
#pragma once

#include "base/json.h"
#include "model/decoder_spec.h"

namespace trtmc {

// Reads rope_theta, rope_scaling, rope_parameters, partial_rotary_factor and
// original_max_position_embeddings of `config`. Every dimension of a head rotates. `context_length`
// is max_position_embeddings, which stands in for an original context that is not given.
// `default_theta` is that of the family's class in Transformers, taken (with a warning) when no
// theta is given.
//
// The values are those of Transformers 5 (modeling_rope_utils.py): an explicit YaRN factor counts,
// and max_position_embeddings / original_max_position_embeddings only where there is none (versions
// before 4.56 preferred the ratio); a disagreement of the two is logged as a warning.
//
// Throws kUnsupported naming rotary types other than default, yarn and llama3, settings per layer
// type and partial rotation; kInvalidArgument for values of the wrong kind and for two settings
// that contradict each other. Ranges are validate()'s business.
RopeSpec read_rope(const JsonCursor& config, int head_dim, int context_length,
                   double default_theta);

// The inverse, added to `config`: rope_theta and rope_scaling, which both styles' readers take.
void write_rope(const RopeSpec& rope, Json& config);

}  // namespace trtmc
