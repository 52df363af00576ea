// A graph as text, a line an operation: what a system of graphs is given, readable in review.
#pragma once

#include <string>

#include "graph/graph_ops.h"

namespace trtmc {

// What record_decoder(spec, form) records, for example
//
//   %0 = input input_ids i64 [batch_size, sequence_length]
//   %9 = linear(%8, layers.0.q_proj)
//   output logits %40 [batch_size, sequence_length, 512]
//
// `composed`: with norms, rotations and activations as the operations that they are composed of.
std::string record_as_text(const DecoderSpec& spec, const GraphForm& form, bool composed = false);

}  // namespace trtmc
