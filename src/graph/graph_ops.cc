#include "graph/graph_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/error.h"
#include "model/rope_table.h"

namespace trtmc {
namespace {

constexpr Axis kBatch{0, "batch_size"};
constexpr Axis kSequence{0, "sequence_length"};
constexpr Axis kPast{0, "past_sequence_length"};
constexpr Axis kTotal{0, "total_sequence_length"};
constexpr Axis kCapacity{0, "cache_capacity"};
constexpr Axis kRows{0, "logits_rows"};
constexpr Axis kOne{1, {}};

constexpr int kTokenAxis = 2;  // Of [B, H, S, D].

// Of the table of cosines, and of that of sines: both are in memory. A million tokens of heads that
// rotate 128 values need that much.
constexpr uint64_t kMostTableBytes = uint64_t{256} << 20;

Value value_of(NetworkTensor tensor) { return Value{static_cast<int>(tensor)}; }
NetworkTensor tensor_of(Value value) { return NetworkTensor{static_cast<int>(value)}; }

Axis axis(int length) { return {length, {}}; }

std::string cache_name(std::string_view which, int layer, std::string_view part) {
  return fmt::format("{}.{}.{}", which, layer, part);
}

void check_table(int context_length, size_t width) {
  const uint64_t bytes = uint64_t{sizeof(float)} * static_cast<uint64_t>(context_length) * width;
  if (bytes <= kMostTableBytes) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("a context of {} tokens makes tables of rotations of {} MiB each, the "
                          "limit of a graph is {}",
                          context_length, bytes >> 20, kMostTableBytes >> 20),
              "build the bundle with a shorter --context");
}

}  // namespace

ElementType layer_type(const GraphForm& form, int layer) {
  const bool fp32 = std::ranges::find(form.fp32_layers, layer) != form.fp32_layers.end();
  return fp32 ? ElementType::kFloat32 : form.type;
}

GraphOps::GraphOps(const DecoderSpec& spec, const GraphForm& form, NetworkSink& sink)
    : spec_(spec), form_(form), sink_(sink), type_(form.type) {
  TRTMC_CHECK(form.cache == GraphForm::Cache::kPastPresent || form.mask == GraphForm::Mask::kGiven,
              "a cache in place has no last token from which a mask could be counted");
  record_inputs();
  record_masks();
}

void GraphOps::record_inputs() {
  const std::array tokens{kBatch, kSequence};
  ids_ = sink_.input("input_ids", form_.index_type, tokens);
  if (form_.mask == GraphForm::Mask::kFromTokens) {
    attention_mask_ = sink_.input("attention_mask", form_.index_type, std::array{kBatch, kTotal});
  }
  positions_ = sink_.input("position_ids", form_.index_type, tokens);
  const bool in_place = form_.cache == GraphForm::Cache::kInPlace;
  if (in_place) write_indices_ = sink_.input("write_indices", form_.index_type, std::array{kBatch});
  if (form_.logits == GraphForm::Logits::kSelected) {
    logits_rows_ = sink_.input("logits_rows", form_.index_type, std::array{kRows});
  }
  const std::array cache{kBatch, axis(spec_.num_kv_heads), in_place ? kCapacity : kPast,
                         axis(spec_.head_dim)};
  for (int layer = 0; layer < spec_.num_layers(); ++layer) {
    const auto past = [&](std::string_view part) {
      return sink_.input(cache_name("past_key_values", layer, part), layer_type(form_, layer),
                         cache);
    };
    const NetworkTensor key = past("key");
    past_.push_back({key, past("value")});
  }
}

// One mask for each length of window that layers have. Masks that are given are inputs, which come
// first; the others need all inputs.
void GraphOps::record_masks() {
  const std::array axes{kBatch, kOne, kSequence, kTotal};
  for (const LayerSpec& layer : spec_.layers) {
    const int window = layer.sliding_window;
    if (masks_.contains(window)) continue;
    if (form_.mask == GraphForm::Mask::kGiven) {
      const std::string name = window > 0 ? fmt::format("mask.window.{}", window) : "mask";
      masks_[window] = sink_.input(name, ElementType::kBool, axes);
    } else {
      masks_[window] = sink_.causal_mask(attention_mask_, ids_, window);
    }
  }
}

// Cosines and sines of the run's positions. Every layer that rotates has the same.
void GraphOps::record_angles(const RopeSpec& rope) {
  const auto width = static_cast<size_t>(rope.rotary_dim / 2);
  check_table(spec_.context_length, width);
  const RopeTable table = make_rope_table(rope);
  const auto positions = static_cast<size_t>(spec_.context_length);
  std::vector<float> cos(positions * width);
  std::vector<float> sin(positions * width);
  for (size_t position = 0; position < positions; ++position) {
    rope_cos_sin(table, static_cast<int64_t>(position),
                 std::span(cos).subspan(position * width, width),
                 std::span(sin).subspan(position * width, width));
  }
  const Shape shape{spec_.context_length, rope.rotary_dim / 2};
  const auto rows = [&](std::string_view name, std::vector<float>& values) {
    return sink_.gather(sink_.constant(name, shape, std::move(values)), positions_);
  };
  const NetworkTensor cosines = rows("rope.cos", cos);
  angles_ = {cosines, rows("rope.sin", sin)};
}

template <typename Body>
NetworkTensor GraphOps::in_float32(NetworkTensor x, Body body) {
  if (type_ == ElementType::kFloat32) return body(x);
  return sink_.cast(body(sink_.cast(x, ElementType::kFloat32)), type_);
}

Value GraphOps::enter(int layer, Value x) {
  const ElementType type = layer_type(form_, layer);
  if (type == type_) return x;
  type_ = type;
  return value_of(sink_.cast(tensor_of(x), type));
}

Value GraphOps::attention_block(const DecoderSpec& spec, int layer, Value x) {
  return DecoderOps::attention_block(spec, layer, enter(layer, x));
}

Value GraphOps::mlp_block(const DecoderSpec& spec, int layer, Value x) {
  return DecoderOps::mlp_block(spec, layer, enter(layer, x));
}

Value GraphOps::embed(TensorKey table) { return value_of(sink_.embed(ids_, table)); }

Value GraphOps::rms_norm(Value x, TensorKey weight, float eps) {
  return value_of(in_float32(tensor_of(x), [&](NetworkTensor in) {
    return sink_.rms_norm(in, sink_.vector(weight), eps);
  }));
}

Value GraphOps::linear(Value x, TensorKey weight) {
  return value_of(sink_.linear(tensor_of(x), weight));
}

Value GraphOps::rope(Value x, const RopeSpec& rope, int num_heads) {
  if (!angles_) record_angles(rope);
  const Value rotated = value_of(in_float32(by_heads(x, num_heads), [&](NetworkTensor heads) {
    return sink_.rotate(heads, angles_->cos, angles_->sin, rope.rotary_dim, spec_.head_dim);
  }));
  by_heads_.insert(rotated);
  return rotated;
}

NetworkTensor GraphOps::by_heads(Value x, int heads) {
  return by_heads_.contains(x) ? tensor_of(x) : sink_.split_heads(tensor_of(x), heads);
}

NetworkTensor GraphOps::with_past(NetworkTensor past, NetworkTensor x) {
  if (form_.cache == GraphForm::Cache::kInPlace) {
    return sink_.update_cache(past, x, write_indices_);
  }
  return sink_.concat(std::array{past, x}, kTokenAxis);
}

Value GraphOps::attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) {
  const LayerCache& past = past_[static_cast<size_t>(layer)];
  const NetworkTensor queries = by_heads(q, spec_.num_heads);
  const NetworkTensor keys = with_past(past.key, by_heads(k, spec_.num_kv_heads));
  const NetworkTensor values = with_past(past.value, by_heads(v, spec_.num_kv_heads));
  present_.push_back({keys, values});
  const NetworkTensor mask = masks_.at(spec.sliding_window);
  return value_of(sink_.merge_heads(sink_.attention(queries, keys, values, mask, type_)));
}

Value GraphOps::swiglu(Value gate, Value up) {
  return value_of(
      sink_.binary(NetworkSink::Binary::kMultiply, sink_.silu(tensor_of(gate)), tensor_of(up)));
}

Value GraphOps::add(Value a, Value b) {
  return value_of(sink_.binary(NetworkSink::Binary::kAdd, tensor_of(a), tensor_of(b)));
}

Value GraphOps::select_rows(Value x) {
  x = enter(-1, x);
  if (form_.logits == GraphForm::Logits::kEveryToken) return x;
  return value_of(sink_.select_tokens(tensor_of(x), logits_rows_));
}

void GraphOps::finish(Value logits) {
  const bool every = form_.logits == GraphForm::Logits::kEveryToken;
  const bool in_place = form_.cache == GraphForm::Cache::kInPlace;
  NetworkTensor out = tensor_of(logits);
  if (form_.logits_type != form_.type) out = sink_.cast(out, form_.logits_type);
  sink_.output(
      "logits", form_.logits_type, out,
      std::array{every ? kBatch : kOne, every ? kSequence : kRows, axis(spec_.vocab_size)});
  const std::array cache{kBatch, axis(spec_.num_kv_heads), in_place ? kCapacity : kTotal,
                         axis(spec_.head_dim)};
  for (int layer = 0; layer < spec_.num_layers(); ++layer) {
    const LayerCache& present = present_[static_cast<size_t>(layer)];
    const ElementType type = layer_type(form_, layer);
    sink_.output(cache_name("present", layer, "key"), type, present.key, cache);
    sink_.output(cache_name("present", layer, "value"), type, present.value, cache);
  }
}

void record_decoder(const DecoderSpec& spec, const GraphForm& form, NetworkSink& sink) {
  GraphOps ops(spec, form, sink);
  ops.finish(decoder_forward(spec, ops));
}

}  // namespace trtmc
