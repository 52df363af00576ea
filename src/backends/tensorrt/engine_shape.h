// Which engines a route has, and the lengths that each is built for. Pure; knows nothing of
// TensorRT. Axes are those of graph/graph_ops.h, by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/decoder_route.h"
#include "graph/graph_ops.h"

namespace trtmc::tensorrt {

struct LengthRange {
  int64_t least;
  int64_t usual;  // What kernels are chosen for.
  int64_t most;
  bool operator==(const LengthRange&) const = default;
};

// What an engine is prepared for: the ranges of the axes that differ from run to run.
using EngineProfile = std::map<std::string, LengthRange, std::less<>>;

struct EngineShape {
  std::map<std::string, int64_t, std::less<>> fixed;  // Lengths that are the same in every run.
  std::vector<EngineProfile> profiles;
  bool operator==(const EngineShape&) const = default;
};

// Where a run goes: engines_of(route)[engine], profiles[profile] of it.
struct EnginePlace {
  int engine;
  int profile;
  bool operator==(const EnginePlace&) const = default;
};

// Tokens in use are handed to attention in whole multiples of this on the route in place, so that
// the steps of a conversation have one shape for a while, and can be captured.
inline constexpr int kExtentStep = 256;

// The form of the graph on this route, in the type given.
GraphForm graph_form(DecoderRoute route, ElementType type);

// `capacity`: tokens a sequence may have; `most_tokens`: of one run, at most `capacity`.
std::vector<EngineShape> engines_of(DecoderRoute route, int capacity, int most_tokens);

// Of a run of `num_tokens` tokens after `num_past` others. One token after others goes where single
// tokens go, all else where prompts go.
EnginePlace place_of_run(DecoderRoute route, int num_tokens, int num_past);

// The length of the last axis of the mask, and so of keys and values that attention reads.
int visible_tokens(DecoderRoute route, int capacity, int num_tokens, int num_past);

// The mask [num_tokens, num_visible] of tokens that follow `num_past` others: query s, which is
// token num_past + s, sees token t <= num_past + s, of these the last `window` (0: all). 1: sees.
void fill_mask(int num_tokens, int num_past, int num_visible, int window, std::span<uint8_t> mask);

}  // namespace trtmc::tensorrt
