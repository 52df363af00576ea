// A GGUF's tensors by the names and in the layout that Transformers gives them. Private to this
// folder.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_file.h"

namespace trtmc {

// "model.layers.3.self_attn.q_proj.weight" for "blk.3.attn_q.weight"; a name that means nothing
// here stays.
std::string gguf_checkpoint_name(std::string_view name);

// How many heads' rows of the tensor lie as llama.cpp's converter puts them for interleaved
// rotation (pairs (0, 1), (2, 3), … instead of (0, half), (1, half + 1), …): those of q and of k.
struct GgufHeads {
  int64_t query, key;
};

// The tensor's values as they would stand in safetensors: heads' rows in Transformers' order,
// blocks decoded. A matrix that is F32 or made of blocks is given as bf16 or f16 if every value
// survives that to the bit, which costs reading it; else as f32. The result borrows `tensor`'s
// bytes. Throws kCorrupt where rows are no whole number of heads, kUnsupported for vectors made of
// blocks.
CheckpointTensor gguf_checkpoint_tensor(std::string_view name, const GgufTensor& tensor,
                                        const GgufHeads& heads);

}  // namespace trtmc
