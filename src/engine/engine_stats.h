// What an engine is doing and has done, as numbers for those who watch it.
#pragma once

#include <array>
#include <cstdint>

namespace trtmc {

struct EngineStats {
  // Now.
  int queued_requests = 0;    // Nothing of them has been computed yet.
  int running_sequences = 0;  // They hold KV blocks.
  int kv_blocks = 0;          // Used, cached and free ones.
  int kv_blocks_used = 0;     // Held by sequences.
  int kv_blocks_cached = 0;   // Held by the prefix cache alone: free as soon as they are needed.
  int block_size = 0;         // Tokens a KV block.
  double step_seconds = 0;    // For so long the step has run that runs; 0: none does.
  int failed_in_row = 0;      // The last steps, of which none has gone well.
  double seconds_since_failure = 0;  // Of the last of these.

  // Since the engine started. A step that fails counts as one, and for nothing else.
  int64_t steps = 0;
  int64_t failed_steps = 0;
  int64_t computed_tokens = 0;   // Of prompts, answers and drafts, also those computed again.
  int64_t prompt_tokens = 0;     // Of requests whose prompt has been read.
  int64_t cached_tokens = 0;     // Of these, taken over from earlier requests.
  int64_t generated_tokens = 0;  // Without stop ids, as Usage counts them.
  int64_t preemptions = 0;       // A sequence gave up its blocks, to be computed anew.
  int64_t proposed_drafts = 0;   // Tokens that were guessed and computed.
  int64_t accepted_drafts = 0;   // Of these, the right ones.

  // Steps by how many sequences were in them: up to 1, 2, 4, …, 512, and more than that.
  static constexpr int kNumBatchSizes = 11;
  std::array<int64_t, kNumBatchSizes> steps_by_batch_size{};
  int64_t step_sequences = 0;  // The sum over all steps.
};

}  // namespace trtmc
