// One answer in the making, as the scheduler sees it: ids, how far they are computed, and the KV
// blocks that hold them. Text, stops and sampling are the engine's.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "base/token.h"
#include "engine/generation.h"

namespace trtmc {

using SequenceId = uint64_t;

struct Sequence {
  // Set by who admits it.
  SequenceId id = 0;  // Unique; rises in the order of arrival.
  Priority priority = Priority::kNormal;
  std::vector<TokenId> tokens;  // The prompt, then what was accepted.
  int prompt_size = 0;
  int max_length = 0;  // No more tokens than these, prompt included.
  // A sequence with the same prompt, admitted before: this one starts once that one has computed
  // the prompt, and takes it over instead of computing it again.
  std::optional<SequenceId> leader;
  // Logits are wanted of all positions from here on; the last known token's always are.
  int logits_from = std::numeric_limits<int>::max();

  // Set by the scheduler.
  int64_t arrival = 0;          // The step.
  int64_t turn = 0;             // Lower is served before: the step of arrival and the priority.
  int computed = 0;             // The first tokens, whose keys and values lie in `blocks`.
  std::vector<BlockId> blocks;  // Position p lies in block p / block_size.
  std::vector<TokenId> draft;   // Guesses at what follows, for the next step.
  int cached = 0;               // Of the prompt's tokens, those that others had computed.
  bool was_preempted = false;
  bool is_planned = false;  // It has a row in the plan.

  int size() const { return static_cast<int>(tokens.size()); }
  int num_uncomputed() const { return size() - computed; }
  bool prompt_computed() const { return computed >= prompt_size; }

  // The order in which sequences are served: by turn, then by arrival.
  bool before(const Sequence& other) const;
};

}  // namespace trtmc
