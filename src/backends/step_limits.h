// What the executors of this machine's memory share: how many KV blocks a budget holds, and whether
// a step keeps to the contract.
#pragma once

#include <cstdint>

#include "backends/backend.h"

namespace trtmc {

// The bytes of one block of `block_size` positions: keys and values of every layer.
uint64_t kv_block_bytes(const DecoderSpec& spec, KvType type, int block_size);

// The limits that `options` ask for with KV blocks of `block_size` positions and `block_bytes`
// bytes. Where they ask for no number of tokens a step has room for `tokens_per_step`, or one of
// each sequence if that is more. Throws kInvalidArgument for a context longer than the model's or a
// budget without room for one block, kExhausted for blocks beyond all memory.
Limits make_limits(const DecoderSpec& spec, const ExecutorOptions& options, int block_size,
                   uint64_t block_bytes, int tokens_per_step = 512);

// Aborts if the step breaks the contract of StepBatch or `limits`: its caller is the engine.
void check_step(const StepBatch& batch, const DecoderSpec& spec, const Limits& limits);

}  // namespace trtmc
