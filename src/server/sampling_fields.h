// The fields of a request that say how tokens are drawn and where an answer ends, alike in chats
// and completions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "bundle/manifest.h"
#include "engine/generation.h"
#include "engine/loaded_model.h"
#include "trtmc/trtmc.h"

namespace trtmc {

struct SamplingFields {
  GenerationOptions
      options;  // Without max_tokens and logprobs, which each dialect has its own way.
  int n = 1;
  bool ignore_eos = false;
  bool keep_special = false;
  Priority priority = Priority::kNormal;
  std::vector<TokenId> stop_ids;  // Beside the bundle's.
};

// The names are OpenAI's and, for what OpenAI has not, vLLM's. Throws a FieldError.
SamplingFields read_sampling_fields(const JsonCursor& request, int vocab_size);

// The engine's request; what the client left out is as the bundle says. Throws a FieldError for a
// value out of its range.
GenerationRequest make_request(const Manifest& manifest, const SamplingFields& fields,
                               std::vector<TokenId> prompt);

// How many of the most likely tokens an answer of one piece holds, with the token itself, for each
// of its tokens: each is some 70 bytes of memory until the answer is sent.
inline constexpr int64_t kMostKeptLogprobs = 1'000'000;

// Throws a FieldError of "logprobs" if the answers to these requests may have more.
void check_kept_logprobs(const LoadedModel& model, std::span<const GenerationRequest> requests);

// Throws a ContextLengthError of `field` if `prompt` leaves no room for an answer.
void check_room(const LoadedModel& model, std::string_view field, std::span<const TokenId> prompt);

}  // namespace trtmc
