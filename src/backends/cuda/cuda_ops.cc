#include "backends/cuda/cuda_ops.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/gemm.h"
#include "backends/cuda/kernels/gemm_wgmma.h"
#include "backends/cuda/kernels/gemv.h"
#include "backends/cuda/kernels/gemv_quantized.h"
#include "backends/cuda/kernels/rms_norm.h"
#include "backends/cuda/kernels/weights.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kScratch = "memory for activations on the GPU";
// Norms that gemv takes for itself: each block takes all of them again.
constexpr int kMostNormsInGemv = 2;

// Room for everything that is alive at once.
size_t arena_floats(const DecoderSpec& spec, const CudaWeights& weights, int tokens, Grain grain) {
  constexpr int kGroupRows = kGroupPanels * kPanelRows;
  const auto rounded = [](int width) { return static_cast<size_t>(width) + 2 * kGroupRows; };
  const size_t hidden = rounded(spec.hidden_size), q = rounded(spec.q_width());
  const size_t kv = rounded(spec.kv_width()), inner = rounded(spec.intermediate_size);
  if (grain == Grain::kBlock && weights.all_fragments()) {
    return static_cast<size_t>(tokens) * (2 * hidden + q + 2 * kv + 3 * kPanelRows);
  }
  return static_cast<size_t>(tokens) * (6 * hidden + 3 * q + 4 * kv + 3 * inner);
}

}  // namespace

CudaOps::Terms::Terms(const DecoderSpec& spec, int num_terms, int tokens) {
  const auto words = [&](int width) {
    return static_cast<size_t>(num_steps(width)) * static_cast<size_t>(num_terms) *
           static_cast<size_t>(tokens) * kStepWords;
  };
  hidden = DeviceBuffer<uint32_t>(words(spec.hidden_size), kScratch, true);
  mixed = DeviceBuffer<uint32_t>(words(spec.q_width()), kScratch, true);
  inner = DeviceBuffer<uint32_t>(words(spec.intermediate_size), kScratch, true);
}

uint64_t CudaOps::Terms::bytes() const { return hidden.bytes() + mixed.bytes() + inner.bytes(); }

TermBuffer CudaOps::buffer(const DeviceBuffer<uint32_t>& memory, int width, int num_tokens) const {
  const int block = term_block(parts_.num_terms, num_tokens);
  return {memory.data(), num_steps(width), block, std::countr_zero(static_cast<unsigned>(block))};
}

TermBuffer CudaOps::mixed() const {
  return buffer(terms(step_.num_tokens).mixed, parts_.spec.q_width(), step_.num_tokens);
}

TermBuffer CudaOps::inner() const {
  return buffer(terms(step_.num_tokens).inner, parts_.spec.intermediate_size, step_.num_tokens);
}

// Kernels write columns alone. Where others lay in the last step, which had another number of
// tokens, what is behind them must be zero again.
void CudaOps::clear_behind_columns() {
  if (step_.num_tokens <= kMostGemvTokens) return;
  const int block = term_block(parts_.num_terms, step_.num_tokens);
  if (std::exchange(many_block_, block) == block) return;
  const auto clear = [&](const DeviceBuffer<uint32_t>& memory, int width) {
    if (width == num_steps(width) * kStepColumns) return;
    check_cuda(cudaMemsetAsync(memory.data(), 0, memory.bytes(), how_.stream), "a step");
  };
  clear(many_.mixed, parts_.spec.q_width());
  clear(many_.inner, parts_.spec.intermediate_size);
}

CudaOps::CudaOps(const CudaOpsParts& parts)
    : parts_(parts),
      arena_(
          arena_floats(parts.spec, parts.weights, parts.limits.max_tokens_per_step, parts.grain)),
      few_(parts.spec, parts.num_terms, kMostGemvTokens),
      many_(parts.spec, parts.num_terms,
            (parts.limits.max_tokens_per_step + kLargestBlock - 1) / kLargestBlock * kLargestBlock),
      attention_(parts_) {}

uint64_t CudaOps::scratch_bytes() const {
  return arena_.bytes() + few_.bytes() + many_.bytes() + attention_.scratch_bytes();
}

void CudaOps::begin(const StepView& step, float* logits, int64_t logits_stride, const Launch& how) {
  arena_.release({0, 0});
  step_ = step;
  logits_ = logits;
  logits_stride_ = logits_stride;
  how_ = how;
  clear_behind_columns();
  attention_.begin(step, how);
}

// ---- Products

ProductArgs CudaOps::product_of(const Activation& x) const {
  ProductArgs args{};
  args.num_tokens = x.rows;
  args.x = x.is_lazy() ? x.source : x.data;
  args.x_stride = x.stride;
  args.rows = x.selected ? step_.rows : nullptr;
  args.norm = x.norm;
  args.width = x.width;
  args.eps = parts_.spec.rms_norm_eps;
  return args;
}

bool CudaOps::launch_gemv_with(const ProductArgs& args, int norm_width) const {
  if (args.format == WeightFormat::kBf16) {
    const auto plan = plan_gemv(parts_.device, args.num_panels, args.steps, args.num_terms,
                                args.num_tokens, norm_width);
    if (plan) launch_gemv(args, *plan, how_);
    return plan.has_value();
  }
  const int table_bytes = args.format == WeightFormat::kQ4 ? kQ4TableBytes : 0;
  const int most = most_quantized_gemv_tokens(args.num_terms);
  const auto plan =
      plan_gemv_quantized(parts_.device, 2 * piece_bytes(args.format), table_bytes, args.num_panels,
                          args.steps, args.num_terms, std::min(args.num_tokens, most), norm_width);
  if (!plan) return false;
  // Tokens of a block of terms lie side by side.
  static_assert(kMostGemvTokens <= kSmallestBlock);
  for (int first = 0; first < args.num_tokens; first += most) {
    ProductArgs part = args;
    part.num_tokens = std::min(most, args.num_tokens - first);
    if (part.in.words != nullptr) part.in.words += first * kHalfWords;
    if (part.out_terms.words != nullptr) part.out_terms.words += first * kHalfWords;
    if (part.out != nullptr) part.out += first * part.out_stride;
    launch_gemv_quantized(part, *plan, how_);
  }
  return true;
}

void CudaOps::launch_gemm_of(const ProductArgs& args) const {
  if (!parts_.device.has_wgmma || args.num_tokens <= kMostGemvTokens) {
    launch_gemm(args, how_);
  } else if (args.format == WeightFormat::kBf16) {
    launch_gemm_wgmma(
        args,
        plan_wgmma(parts_.device, args.num_panels, args.steps, args.num_terms, args.num_tokens),
        how_);
  } else {
    launch_gemm_wgmma_quantized(
        args, plan_wgmma_quantized(parts_.device, args.num_panels, args.num_terms, args.num_tokens),
        how_);
  }
}

void CudaOps::multiply(ProductArgs args, const CudaMatrix& matrix) {
  if (args.num_tokens == 0) return;
  args.weights = matrix.fragments;
  args.format = matrix.format;
  args.num_panels = matrix.num_panels;
  args.steps = matrix.steps;
  args.segment = segment_steps(matrix.format, matrix.steps);
  args.num_terms = parts_.num_terms;
  args.row_distance = matrix.row_distance;
  args.first_row = matrix.first_row;
  const bool few = args.num_tokens <= kMostGemvTokens;
  const bool wants_norms = args.norm != nullptr && args.num_tokens <= kMostNormsInGemv;
  if (few && wants_norms && launch_gemv_with(args, args.width)) return;
  if (args.x != nullptr) {
    // Which buffer has room for rows of this width and number.
    const Terms& room = terms(args.num_tokens);
    args.in = buffer(args.width == parts_.spec.hidden_size ? room.hidden
                     : args.width == parts_.spec.q_width() ? room.mixed
                                                           : room.inner,
                     args.width, args.num_tokens);
    launch_rows({.x = args.x,
                 .rows = args.rows,
                 .num_rows = args.num_tokens,
                 .x_stride = args.x_stride,
                 .width = args.width,
                 .norm = args.norm,
                 .eps = args.eps,
                 .out = nullptr,
                 .out_stride = 0,
                 .out_terms = args.in,
                 .num_terms = args.num_terms},
                how_);
    args.norm = nullptr;
  }
  if (!few || !launch_gemv_with(args, 0)) launch_gemm_of(args);
}

void CudaOps::multiply_floats(Value x, const CudaMatrix& matrix, float* out, int64_t stride) {
  const float* data = floats(x);
  const Activation& in = arena_.get(x);
  if (in.rows == 0) return;
  launch_linear({.panels = matrix.panels,
                 .num_rows = matrix.rows,
                 .width = matrix.cols,
                 .x = data,
                 .x_stride = in.stride,
                 .num_tokens = in.rows,
                 .out = out,
                 .out_stride = stride},
                how_);
}

// ---- Operations

Value CudaOps::embed(TensorKey table) {
  const CudaMatrix& matrix = parts_.weights.matrix(table);
  const Value out = arena_.add(step_.num_tokens, matrix.cols);
  launch_embed({.format = matrix.format,
                .fragments = matrix.fragments,
                .panels = matrix.panels,
                .steps = matrix.steps,
                .width = matrix.cols,
                .tokens = step_.tokens,
                .num_tokens = step_.num_tokens,
                .out = arena_.get(out).data,
                .out_stride = arena_.get(out).stride},
               how_);
  return out;
}

// Of x, lazily: a product may take it as it is.
Activation CudaOps::lazy_source(Value x) {
  const Activation& of = arena_.get(x);
  if (of.is_lazy()) return of;
  Activation lazy = of;
  lazy.source = of.data;
  lazy.data = nullptr;
  return lazy;
}

Value CudaOps::rms_norm(Value x, TensorKey weight, float eps) {
  TRTMC_CHECK(eps == parts_.spec.rms_norm_eps, "a norm of another model");
  Activation lazy = lazy_source(x);
  TRTMC_CHECK(lazy.norm == nullptr, "a norm of a norm");
  lazy.norm = parts_.weights.norm(weight);
  return arena_.add_lazy(lazy);
}

Value CudaOps::select_rows(Value x) {
  Activation lazy = lazy_source(x);
  lazy.selected = true;
  lazy.rows = step_.num_rows;
  return arena_.add_lazy(lazy);
}

// Of a lazy one: computed now.
const float* CudaOps::floats(Value x) {
  const Activation of = arena_.get(x);
  if (!of.is_lazy()) return of.data;
  arena_.materialise(x);
  const Activation& made = arena_.get(x);
  if (made.rows == 0) return made.data;
  launch_rows({.x = of.source,
               .rows = of.selected ? step_.rows : nullptr,
               .num_rows = of.rows,
               .x_stride = of.stride,
               .width = of.width,
               .norm = of.norm,
               .eps = parts_.spec.rms_norm_eps,
               .out = made.data,
               .out_stride = made.stride,
               .out_terms = {},
               .num_terms = 0},
              how_);
  return made.data;
}

Value CudaOps::linear(Value x, TensorKey weight) {
  const CudaMatrix& matrix = parts_.weights.matrix(weight);
  const bool head = weight.role == Role::kEmbedding || weight.role == Role::kLmHead;
  Activation result;
  result.data = logits_;
  result.rows = arena_.get(x).rows;
  result.width = matrix.rows;
  result.stride = logits_stride_;
  const Value out = head ? arena_.add_lazy(result) : arena_.add(result.rows, result.width);
  float* data = arena_.get(out).data;
  const int64_t stride = arena_.get(out).stride;
  if (matrix.panels != nullptr) {
    multiply_floats(x, matrix, data, stride);
    return out;
  }
  ProductArgs args = product_of(arena_.get(x));
  args.epilogue = Epilogue::kStore;
  args.out = data;
  args.out_stride = stride;
  args.num_rows = matrix.rows;
  multiply(args, matrix);
  return out;
}

// In place: nobody looks at x again.
Value CudaOps::rope(Value x, const RopeSpec& rope, int num_heads) {
  TRTMC_CHECK(rope == parts_.spec.rope, "a rotation of another model");
  attention_.rotate(arena_.get(x).data, arena_.get(x).stride, num_heads);
  return x;
}

Value CudaOps::attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) {
  const Activation queries = arena_.get(q);
  const Value out = arena_.add(queries.rows, queries.width);
  // One stride for all three.
  const Value same = arena_.add(step_.num_tokens, queries.width + 2 * arena_.get(k).width + 8);
  const Activation& all = arena_.get(same);
  const auto put = [&](const Activation& from, int64_t column) {
    check_cuda(
        cudaMemcpy2DAsync(all.data + column, static_cast<size_t>(all.stride) * sizeof(float),
                          from.data, static_cast<size_t>(from.stride) * sizeof(float),
                          static_cast<size_t>(from.width) * sizeof(float),
                          static_cast<size_t>(from.rows), cudaMemcpyDeviceToDevice, how_.stream),
        "attention");
  };
  put(queries, 0);
  put(arena_.get(k), queries.width);
  put(arena_.get(v), queries.width + arena_.get(k).width);
  float* keys = all.data + queries.width;
  attention_.attend(layer, spec,
                    {.q = all.data,
                     .k = keys,
                     .v = keys + arena_.get(k).width,
                     .stride = all.stride,
                     .rotated = true},
                    {.rows = arena_.get(out).data, .stride = arena_.get(out).stride, .terms = {}});
  return out;
}

Value CudaOps::swiglu(Value gate, Value up) {
  const Activation a = arena_.get(gate);
  const Value out = arena_.add(a.rows, a.width);
  launch_pairwise({.operation = Pairwise::kSwiglu,
                   .a = a.data,
                   .b = arena_.get(up).data,
                   .out = arena_.get(out).data,
                   .count = a.rows * a.stride},
                  how_);
  return out;
}

Value CudaOps::add(Value a, Value b) {
  const Activation first = arena_.get(a);
  const Value out = arena_.add(first.rows, first.width);
  launch_pairwise({.operation = Pairwise::kAdd,
                   .a = first.data,
                   .b = arena_.get(b).data,
                   .out = arena_.get(out).data,
                   .count = first.rows * first.stride},
                  how_);
  return out;
}

// ---- Blocks: x is changed in place, since nobody looks at the old one again.

// The block composed of operations, its result written over x.
template <typename Compose>
Value CudaOps::composed(Value x, Compose compose) {
  const ArenaScope scope(arena_);
  const Activation result = arena_.get(compose());
  check_cuda(cudaMemcpyAsync(arena_.get(x).data, result.data,
                             static_cast<size_t>(result.rows * result.stride) * sizeof(float),
                             cudaMemcpyDeviceToDevice, how_.stream),
             "a layer");
  return x;
}

// x + in W^T, over x.
Value CudaOps::add_product(Value x, TermBuffer in, const TensorKey& weight) {
  const CudaMatrix& matrix = parts_.weights.matrix(weight);
  ProductArgs args{};
  args.num_tokens = step_.num_tokens;
  args.in = in;
  args.epilogue = Epilogue::kAdd;
  args.out = arena_.get(x).data;
  args.out_stride = arena_.get(x).stride;
  args.num_rows = matrix.rows;
  multiply(args, matrix);
  return x;
}

Value CudaOps::attention_block(const DecoderSpec& spec, int layer, Value x) {
  if (!fused()) return composed(x, [&] { return DecoderOps::attention_block(spec, layer, x); });
  const ArenaScope scope(arena_);
  const LayerSpec& layer_spec = spec.layers[static_cast<size_t>(layer)];
  const CudaMatrix qkv_matrix = parts_.weights.qkv(layer);
  const Activation qkv = arena_.get(arena_.add(step_.num_tokens, qkv_matrix.rows));
  ProductArgs products = product_of(arena_.get(x));
  products.norm = parts_.weights.norm({Role::kAttentionNorm, layer});
  products.epilogue = Epilogue::kStore;
  products.out = qkv.data;
  products.out_stride = qkv.stride;
  products.num_rows = qkv_matrix.rows;
  multiply(products, qkv_matrix);

  attention_.attend(layer, layer_spec,
                    {.q = qkv.data,
                     .k = qkv.data + parts_.weights.first_k_row(),
                     .v = qkv.data + parts_.weights.first_v_row(),
                     .stride = qkv.stride,
                     .rotated = !layer_spec.rope},
                    {.rows = nullptr, .stride = 0, .terms = mixed()});
  return add_product(x, mixed(), {Role::kOProj, layer});
}

Value CudaOps::mlp_block(const DecoderSpec& spec, int layer, Value x) {
  if (!fused()) return composed(x, [&] { return DecoderOps::mlp_block(spec, layer, x); });
  const CudaMatrix gate_up = parts_.weights.gate_up(layer);
  ProductArgs products = product_of(arena_.get(x));
  products.norm = parts_.weights.norm({Role::kMlpNorm, layer});
  products.epilogue = Epilogue::kSwiglu;
  products.num_rows = gate_up.rows;
  products.out_terms = inner();
  multiply(products, gate_up);
  return add_product(x, inner(), {Role::kDownProj, layer});
}

void CudaOps::observe(int layer, Value x) {
  if (!parts_.probe) return;
  const Activation& rows = arena_.get(x);
  const auto width = static_cast<size_t>(rows.width) * sizeof(float);
  probed_.resize(static_cast<size_t>(rows.rows) * static_cast<size_t>(rows.width));
  check_cuda(cudaMemcpy2DAsync(probed_.data(), width, rows.data,
                               static_cast<size_t>(rows.stride) * sizeof(float), width,
                               static_cast<size_t>(rows.rows), cudaMemcpyDeviceToHost, how_.stream),
             "reading hidden states");
  check_cuda(cudaStreamSynchronize(how_.stream), "reading hidden states");
  parts_.probe(layer, probed_);
}

}  // namespace trtmc::cuda
