#include "backends/cpu/cpu_ops.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/dispatch.h"
#include "base/check.h"
#include "tensor/block_formats.h"
#include "tensor/packed_layout.h"

namespace trtmc::cpu {
namespace {

// Panels that a thread takes at a time. A single token streams them from memory, four side by side;
// with more tokens they wait in the cache while the tokens pass.
constexpr int64_t kPanelsOfOneToken = 4;
constexpr int64_t kPanelsOfManyTokens = 8;

// Room for everything that is alive at once at the grain of operations, the larger of the two.
size_t arena_floats(const DecoderSpec& spec, const Limits& limits, int tile_tokens) {
  const auto tokens = static_cast<size_t>(round_up(limits.max_tokens_per_step, tile_tokens));
  const auto hidden = static_cast<size_t>(round_up(spec.hidden_size, 16));
  const auto q = static_cast<size_t>(round_up(spec.q_width(), 16));
  const auto kv = static_cast<size_t>(round_up(spec.kv_width(), 16));
  const auto intermediate = static_cast<size_t>(round_up(spec.intermediate_size, 16));
  const auto vocab = static_cast<size_t>(round_up(spec.vocab_size, 16));
  const auto bytes = [](int64_t width) {
    return static_cast<size_t>(round_up(quantized_width(round_up(width, kGroupColumns)), 16));
  };
  const size_t quantized =
      2 * bytes(spec.hidden_size) + 2 * bytes(spec.q_width()) + bytes(spec.intermediate_size);
  return tokens * (11 * hidden + 7 * q + 4 * kv + 4 * intermediate + vocab + quantized);
}

bool has_bytes(const CpuMatrix* matrix) { return is_quantized(matrix->dtype); }
bool has_rest(const CpuMatrix* matrix) { return matrix->multiplies_rest; }

}  // namespace

CpuOps::CpuOps(const DecoderSpec& spec, const KernelTable& kernels, const CpuWeights& weights,
               const Limits& limits, CpuKvCache& cache, ThreadPool& pool, Grain grain,
               const HiddenStateProbe& probe)
    : spec_(spec),
      kernels_(kernels),
      weights_(weights),
      cache_(cache),
      pool_(pool),
      grain_(grain),
      probe_(probe),
      rope_table_(make_rope_table(spec.rope)),
      arena_(arena_floats(spec, limits, kernels.tile_tokens)),
      attention_scratch_(static_cast<size_t>(pool.num_threads()),
                         std::vector<float>(attention_scratch_floats(spec))) {}

uint64_t CpuOps::scratch_bytes() const {
  uint64_t floats = cos_.capacity() + sin_.capacity() + probed_.capacity();
  for (const auto& scratch : attention_scratch_) floats += scratch.size();
  return arena_.most_bytes() + floats * sizeof(float);
}

void CpuOps::begin(const StepBatch& batch) {
  batch_ = batch;
  arena_.clear();
  attention_tiles_.clear();
  append_attention_tiles(batch, attention_tiles_);
  token_sequence_.resize(batch.tokens.size());
  for (size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s) {
    for (int32_t t = batch.sequence_starts[s]; t < batch.sequence_starts[s + 1]; ++t) {
      token_sequence_[static_cast<size_t>(t)] = static_cast<int>(s);
    }
  }
  const auto half = static_cast<size_t>(spec_.rope.rotary_dim) / 2;
  cos_.resize(batch.tokens.size() * half);
  sin_.resize(cos_.size());
  pool_.share(num_tokens(), [&](int64_t token, int) {
    const auto t = static_cast<size_t>(token);
    rope_cos_sin(rope_table_, batch.positions[t], std::span(cos_).subspan(t * half, half),
                 std::span(sin_).subspan(t * half, half));
  });
}

// ---- Products

CpuOps::PackedTokens CpuOps::pack(Value x, std::initializer_list<const CpuMatrix*> readers,
                                  const float* norm_weight, float eps) {
  const Activation in = get(x);
  const int tile = kernels_.tile_tokens;
  const int num_tiles = (in.rows + tile - 1) / tile;
  const Activation normed = norm_weight != nullptr ? get(arena_.add(in.rows, in.width)) : in;
  const bool one = in.rows == 1;  // Its row is its tile.
  const bool floats = !one && !std::ranges::all_of(readers, has_bytes);
  const Activation packed = floats ? get(arena_.add(num_tiles * tile, in.width)) : normed;
  const int64_t columns = round_up(in.width, kGroupColumns);
  const int64_t bytes_width = quantized_width(columns);
  float *bytes = nullptr, *rest = nullptr, *rest_bytes = nullptr;
  if (std::ranges::any_of(readers, has_bytes)) {
    bytes = get(arena_.add(num_tiles * tile, bytes_width)).data;
  }
  if (std::ranges::any_of(readers, has_rest)) {
    rest = get(arena_.add(in.rows, in.width)).data;
    rest_bytes = get(arena_.add(num_tiles * tile, bytes_width)).data;
  }
  pool_.share(num_tiles, [&](int64_t unit, int) {
    const auto first = static_cast<int>(unit) * tile;
    const int count = std::min(tile, in.rows - first);
    for (int t = first; norm_weight != nullptr && t < first + count; ++t) {
      kernels_.rms_norm(in.row(t), norm_weight, in.width, in.stride, eps, normed.row(t));
    }
    if (floats) kernels_.pack_tokens(normed.row(first), count, in.stride, packed.row(first));
    float* left = rest == nullptr ? nullptr : rest + first * in.stride;
    if (bytes != nullptr) {
      kernels_.quantize_tokens(normed.row(first), count, in.stride, columns,
                               bytes + first * bytes_width, left);
    }
    if (left != nullptr) {
      kernels_.quantize_tokens(left, count, in.stride, columns, rest_bytes + first * bytes_width,
                               nullptr);
    }
  });
  return {in.rows, {packed.data, in.stride}, {bytes, bytes_width}, {rest_bytes, bytes_width}};
}

int64_t CpuOps::num_units(const CpuMatrix& matrix, int num_tokens) const {
  const int64_t panels = num_tokens == 1 ? kPanelsOfOneToken : kPanelsOfManyTokens;
  return (matrix.layout().num_panels() + panels - 1) / panels;
}

CpuOps::PanelRange CpuOps::unit_panels(const CpuMatrix& matrix, int num_tokens,
                                       int64_t unit) const {
  const int64_t panels = num_tokens == 1 ? kPanelsOfOneToken : kPanelsOfManyTokens;
  const int64_t first = unit * panels;
  return {first, std::min(panels, matrix.layout().num_panels() - first)};
}

void CpuOps::multiply(const PackedTokens& x, const Product& product, PanelRange panels) const {
  const CpuMatrix& matrix = *product.matrix;
  const PackedLayout layout = matrix.layout();
  const PackedTokens::Form& form = is_quantized(matrix.dtype) ? x.bytes : x.floats;
  MatmulArgs args{
      .panels = matrix.panels.data() + static_cast<size_t>(panels.first) * layout.panel_bytes(),
      .panel_bytes = static_cast<int64_t>(layout.panel_bytes()),
      .num_panels = static_cast<int>(panels.count),
      .k = layout.padded_cols(),
      .x = form.data,
      .x_width = form.width,
      .num_tokens = x.num_tokens,
      .y = product.y.data + panels.first * kPanelRows,
      .y_stride = product.y.stride};
  const MatmulKernel matmul = matmul_of(kernels_, matrix.dtype);
  matmul(args);
  if (!matrix.multiplies_rest) return;
  args.x = x.rest.data;
  args.adds = true;
  matmul(args);
}

void CpuOps::multiply_all(const PackedTokens& x, std::span<const Product> products) {
  if (x.num_tokens == 0) return;
  int64_t total = 0;
  for (const Product& product : products) total += num_units(*product.matrix, x.num_tokens);
  pool_.share(total, [&](int64_t unit, int) {
    const Product* product = products.data();
    for (int64_t units; unit >= (units = num_units(*product->matrix, x.num_tokens)); ++product) {
      unit -= units;
    }
    multiply(x, *product, unit_panels(*product->matrix, x.num_tokens, unit));
  });
}

void CpuOps::multiply_onto(Value by, TensorKey weight, Value x) {
  const ArenaScope scope(arena_);
  const CpuMatrix& matrix = weights_.matrix(weight);
  const PackedTokens packed = pack(by, {&matrix});
  const Activation residual = get(x);
  const Activation y = get(arena_.add(packed.num_tokens, matrix.rows));
  pool_.share(num_units(matrix, packed.num_tokens), [&](int64_t unit, int) {
    const PanelRange panels = unit_panels(matrix, packed.num_tokens, unit);
    multiply(packed, {&matrix, y}, panels);
    for (int t = 0; t < packed.num_tokens; ++t) {
      float* to = residual.row(t) + panels.first * kPanelRows;
      kernels_.add(to, y.row(t) + panels.first * kPanelRows, panels.count * kPanelRows, to);
    }
  });
}

// ---- Operations

Value CpuOps::embed(TensorKey table) {
  const CpuMatrix& matrix = weights_.matrix(table);
  const Value out = arena_.add(num_tokens(), matrix.cols);
  const Activation rows = get(out);
  pool_.share(rows.rows, [&](int64_t t, int) {
    const std::span<float> row(rows.row(t), static_cast<size_t>(rows.stride));
    const auto width = static_cast<size_t>(rows.width);
    unpack_row(matrix.layout(), matrix.panels, batch_.tokens[static_cast<size_t>(t)],
               row.first(width));
    std::ranges::fill(row.subspan(width), 0.0F);
  });
  return out;
}

Value CpuOps::rms_norm(Value x, TensorKey weight, float eps) {
  const Activation in = get(x);
  const Value out = arena_.add(in.rows, in.width);
  const Activation rows = get(out);
  const float* scale = weights_.norm(weight);
  pool_.share(in.rows, [&](int64_t t, int) {
    kernels_.rms_norm(in.row(t), scale, in.width, in.stride, eps, rows.row(t));
  });
  return out;
}

Value CpuOps::linear(Value x, TensorKey weight) {
  const CpuMatrix& matrix = weights_.matrix(weight);
  const Value out = arena_.add(get(x).rows, matrix.rows);
  const Product product{&matrix, get(out)};
  const ArenaScope scope(arena_);
  multiply_all(pack(x, {&matrix}), {&product, 1});
  return out;
}

// The heads of one token; what lies behind the rotary dimension stays as it is.
void CpuOps::rotate(const Activation& x, int token, int num_heads) const {
  const auto half = static_cast<size_t>(spec_.rope.rotary_dim) / 2;
  const float* cos = cos_.data() + static_cast<size_t>(token) * half;
  const float* sin = sin_.data() + static_cast<size_t>(token) * half;
  for (int h = 0; h < num_heads; ++h) {
    float* head = x.row(token) + static_cast<ptrdiff_t>(h) * spec_.head_dim;
    for (size_t i = 0; i < half; ++i) {
      const float a = head[i];
      const float b = head[i + half];
      head[i] = a * cos[i] - b * sin[i];
      head[i + half] = b * cos[i] + a * sin[i];
    }
  }
}

Value CpuOps::rope(Value x, const RopeSpec& rope, int num_heads) {
  TRTMC_CHECK(rope == spec_.rope, "a rotation of another model");
  const Activation in = get(x);
  const Value out = arena_.add(in.rows, in.width);
  const Activation rows = get(out);
  pool_.share(in.rows, [&](int64_t t, int) {
    std::copy_n(in.row(t), in.stride, rows.row(t));
    rotate(rows, static_cast<int>(t), num_heads);
  });
  return out;
}

void CpuOps::store_token(Value k, Value v, int layer, int token) {
  const auto t = static_cast<size_t>(token);
  const int32_t position = batch_.positions[t];
  const size_t table =
      static_cast<size_t>(token_sequence_[t]) * static_cast<size_t>(batch_.max_blocks);
  const BlockId block = batch_.block_tables[table + static_cast<size_t>(position / kKvBlockSize)];
  cache_.store(block, layer, position % kKvBlockSize, get(k).row(token), get(v).row(token));
}

void CpuOps::attend_all(Value q, Value out, int layer, const LayerSpec& spec) {
  const AttentionJob job{.kernels = kernels_,
                         .spec = spec_,
                         .batch = batch_,
                         .cache = cache_,
                         .layer = layer,
                         .sliding_window = spec.sliding_window,
                         .q = get(q).data,
                         .out = get(out).data,
                         .stride = get(q).stride};
  const int64_t heads = spec_.num_kv_heads;
  const int64_t units = static_cast<int64_t>(attention_tiles_.size()) * heads;
  pool_.share(units, [&](int64_t unit, int thread) {
    unit = units - 1 - unit;  // The longest context first, so that the last units are short.
    attend(job, attention_tiles_[static_cast<size_t>(unit / heads)], static_cast<int>(unit % heads),
           attention_scratch_[static_cast<size_t>(thread)]);
  });
}

Value CpuOps::attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) {
  const Value out = arena_.add(get(q).rows, get(q).width);
  pool_.share(num_tokens(), [&](int64_t t, int) { store_token(k, v, layer, static_cast<int>(t)); });
  attend_all(q, out, layer, spec);
  return out;
}

Value CpuOps::swiglu(Value gate, Value up) {
  const Activation a = get(gate);
  const Activation b = get(up);
  const Value out = arena_.add(a.rows, a.width);
  const Activation rows = get(out);
  pool_.share(a.rows,
              [&](int64_t t, int) { kernels_.swiglu(a.row(t), b.row(t), a.stride, rows.row(t)); });
  return out;
}

Value CpuOps::add(Value a, Value b) {
  const Activation first = get(a);
  const Activation second = get(b);
  const Value out = arena_.add(first.rows, first.width);
  const Activation rows = get(out);
  pool_.share(first.rows, [&](int64_t t, int) {
    kernels_.add(first.row(t), second.row(t), first.stride, rows.row(t));
  });
  return out;
}

Value CpuOps::select_rows(Value x) {
  const Activation in = get(x);
  const Value out = arena_.add(static_cast<int>(batch_.logits_rows.size()), in.width);
  for (int r = 0; r < get(out).rows; ++r) {
    std::copy_n(in.row(batch_.logits_rows[static_cast<size_t>(r)]), in.stride, get(out).row(r));
  }
  return out;
}

// ---- Blocks: x is changed in place, since nobody looks at the old one again.

// The block composed of operations, its result written over x.
template <typename Compose>
Value CpuOps::composed(Value x, Compose compose) {
  const ArenaScope scope(arena_);
  const Activation result = get(compose());
  std::copy_n(result.data, result.rows * result.stride, get(x).data);
  return x;
}

Value CpuOps::attention_block(const DecoderSpec& spec, int layer, Value x) {
  if (grain_ == Grain::kOperation) {
    return composed(x, [&] { return DecoderOps::attention_block(spec, layer, x); });
  }
  const ArenaScope scope(arena_);
  const LayerSpec& layer_spec = spec.layers[static_cast<size_t>(layer)];
  const CpuMatrix& q_proj = weights_.matrix({Role::kQProj, layer});
  const CpuMatrix& k_proj = weights_.matrix({Role::kKProj, layer});
  const CpuMatrix& v_proj = weights_.matrix({Role::kVProj, layer});
  const PackedTokens normed = pack(x, {&q_proj, &k_proj, &v_proj},
                                   weights_.norm({Role::kAttentionNorm, layer}), spec.rms_norm_eps);
  const Value q = arena_.add(normed.num_tokens, spec.q_width());
  const Value k = arena_.add(normed.num_tokens, spec.kv_width());
  const Value v = arena_.add(normed.num_tokens, spec.kv_width());
  const std::array<Product, 3> products = {
      {{&q_proj, get(q)}, {&k_proj, get(k)}, {&v_proj, get(v)}}};
  multiply_all(normed, products);
  pool_.share(normed.num_tokens, [&](int64_t unit, int) {
    const auto token = static_cast<int>(unit);
    if (layer_spec.rope) {
      rotate(get(q), token, spec.num_heads);
      rotate(get(k), token, spec.num_kv_heads);
    }
    store_token(k, v, layer, token);
  });
  const Value mixed = arena_.add(normed.num_tokens, spec.q_width());
  attend_all(q, mixed, layer, layer_spec);
  multiply_onto(mixed, {Role::kOProj, layer}, x);
  return x;
}

Value CpuOps::mlp_block(const DecoderSpec& spec, int layer, Value x) {
  if (grain_ == Grain::kOperation) {
    return composed(x, [&] { return DecoderOps::mlp_block(spec, layer, x); });
  }
  const ArenaScope scope(arena_);
  const CpuMatrix& gate_proj = weights_.matrix({Role::kGateProj, layer});
  const CpuMatrix& up_proj = weights_.matrix({Role::kUpProj, layer});
  const PackedTokens normed =
      pack(x, {&gate_proj, &up_proj}, weights_.norm({Role::kMlpNorm, layer}), spec.rms_norm_eps);
  const Value gate = arena_.add(normed.num_tokens, spec.intermediate_size);
  const Value up = arena_.add(normed.num_tokens, spec.intermediate_size);
  const Product gate_product{&gate_proj, get(gate)};
  const Product up_product{&up_proj, get(up)};
  pool_.share(num_units(gate_proj, normed.num_tokens), [&](int64_t unit, int) {
    const PanelRange panels = unit_panels(gate_proj, normed.num_tokens, unit);
    multiply(normed, gate_product, panels);
    multiply(normed, up_product, panels);
    for (int t = 0; t < normed.num_tokens; ++t) {
      float* out = gate_product.y.row(t) + panels.first * kPanelRows;
      kernels_.swiglu(out, up_product.y.row(t) + panels.first * kPanelRows,
                      panels.count * kPanelRows, out);
    }
  });
  multiply_onto(gate, {Role::kDownProj, layer}, x);
  return x;
}

void CpuOps::observe(int layer, Value x) {
  if (!probe_) return;
  const Activation rows = get(x);
  probed_.resize(static_cast<size_t>(rows.rows * rows.width));
  for (int t = 0; t < rows.rows; ++t) {
    std::copy_n(rows.row(t), rows.width, probed_.begin() + t * rows.width);
  }
  probe_(layer, probed_);
}

}  // namespace trtmc::cpu
