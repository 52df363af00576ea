#include "backends/tensorrt/engine_shape.h"

#include <algorithm>

#include "base/check.h"

namespace trtmc::tensorrt {
namespace {

LengthRange sum(const LengthRange& a, const LengthRange& b) {
  return {a.least + b.least, a.usual + b.usual, a.most + b.most};
}

int to_whole_extent(int tokens, int capacity) {
  const int extents = (tokens + kExtentStep - 1) / kExtentStep;
  return std::min(extents * kExtentStep, capacity);
}

EngineProfile profile_of(DecoderRoute route, int capacity, const LengthRange& tokens,
                         const LengthRange& past) {
  EngineProfile profile{{"sequence_length", tokens}, {"logits_rows", {1, 1, tokens.most}}};
  if (route == DecoderRoute::kNativeKv) {
    const auto usual = static_cast<int>(past.usual + tokens.usual);
    profile["total_sequence_length"] = {to_whole_extent(1, capacity),
                                        to_whole_extent(usual, capacity), capacity};
  } else {
    profile["past_sequence_length"] = past;
    profile["total_sequence_length"] = sum(past, tokens);
  }
  return profile;
}

}  // namespace

GraphForm graph_form(DecoderRoute route, ElementType type) {
  GraphForm form;
  form.type = type;
  form.index_type = ElementType::kInt32;
  form.logits_type = ElementType::kFloat32;
  form.cache = route == DecoderRoute::kNativeKv ? GraphForm::Cache::kInPlace
                                                : GraphForm::Cache::kPastPresent;
  form.mask = GraphForm::Mask::kGiven;
  form.logits = GraphForm::Logits::kSelected;
  return form;
}

std::vector<EngineShape> engines_of(DecoderRoute route, int capacity, int most_tokens) {
  TRTMC_CHECK(most_tokens >= 1 && most_tokens <= capacity, "a run has from one token to all");
  const LengthRange prompt{1, most_tokens, most_tokens};
  const LengthRange before_prompt{0, 0, capacity - 1};
  const LengthRange single{1, 1, 1};
  const LengthRange before_single{std::min(1, capacity - 1), capacity / 2, capacity - 1};

  EngineShape shape{.fixed = {{"batch_size", 1}}, .profiles = {}};
  if (route == DecoderRoute::kNativeKv) shape.fixed["cache_capacity"] = capacity;
  const EngineProfile prompts = profile_of(route, capacity, prompt, before_prompt);
  const EngineProfile singles = profile_of(route, capacity, single, before_single);
  if (route == DecoderRoute::kStandard) {
    EngineShape other = shape;
    shape.profiles = {prompts};
    other.profiles = {singles};
    return {shape, other};
  }
  shape.profiles = {prompts, singles};
  return {shape};
}

EnginePlace place_of_run(DecoderRoute route, int num_tokens, int num_past) {
  if (num_tokens > 1 || num_past == 0) return {0, 0};
  return route == DecoderRoute::kStandard ? EnginePlace{1, 0} : EnginePlace{0, 1};
}

int visible_tokens(DecoderRoute route, int capacity, int num_tokens, int num_past) {
  const int used = num_past + num_tokens;
  return route == DecoderRoute::kNativeKv ? to_whole_extent(used, capacity) : used;
}

void fill_mask(int num_tokens, int num_past, int num_visible, int window, std::span<uint8_t> mask) {
  TRTMC_CHECK(num_past + num_tokens <= num_visible, "a mask too narrow for its tokens");
  const auto width = static_cast<size_t>(num_visible);
  TRTMC_CHECK(mask.size() == static_cast<size_t>(num_tokens) * width, "a mask of another shape");
  std::ranges::fill(mask, uint8_t{0});
  for (int s = 0; s < num_tokens; ++s) {
    const int last = num_past + s;
    const int first = window > 0 ? std::max(0, last - window + 1) : 0;
    const auto row = mask.subspan(static_cast<size_t>(s) * width, width);
    std::ranges::fill(
        row.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first) + 1), uint8_t{1});
  }
}

}  // namespace trtmc::tensorrt
