#include "backends/reference/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/kv_bytes.h"
#include "backends/kv_fp8.h"
#include "base/check.h"
#include "tensor/dtype.h"

namespace trtmc::reference {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

KvStore::KvStore(const DecoderSpec& spec, const Limits& limits, KvType type)
    : width_(static_cast<size_t>(spec.kv_width())),
      head_dim_(static_cast<size_t>(spec.head_dim)),
      block_size_(static_cast<size_t>(limits.block_size)),
      block_floats_(2 * static_cast<size_t>(spec.num_layers()) * block_size_ * width_),
      type_(type),
      blocks_(static_cast<size_t>(limits.num_blocks)) {}

std::vector<float>& KvStore::block_memory(BlockId block) {
  std::vector<float>& memory = blocks_[static_cast<size_t>(block)];
  memory.resize(block_floats_);
  return memory;
}

std::span<float> KvStore::key(BlockId block, int layer, int offset) {
  const size_t entry = 2 * static_cast<size_t>(layer) * block_size_ + static_cast<size_t>(offset);
  return std::span(block_memory(block)).subspan(entry * width_, width_);
}

std::span<float> KvStore::value(BlockId block, int layer, int offset) {
  const size_t entry =
      (2 * static_cast<size_t>(layer) + 1) * block_size_ + static_cast<size_t>(offset);
  return std::span(block_memory(block)).subspan(entry * width_, width_);
}

void KvStore::round(std::span<float> x) const {
  if (type_ == KvType::kBF16) {
    for (float& value : x) value = bf16_to_float(float_to_bf16(value));
  } else if (type_ == KvType::kQ8) {
    std::vector<int8_t> codes(head_dim_);
    for (; !x.empty(); x = x.subspan(head_dim_)) {
      const float scale = head_to_bytes(x.first(head_dim_), codes);
      for (size_t i = 0; i < head_dim_; ++i) x[i] = scale * static_cast<float>(codes[i]);
    }
  } else if (type_ == KvType::kFp8) {
    std::vector<uint8_t> codes(head_dim_);
    for (; !x.empty(); x = x.subspan(head_dim_)) {
      const float scale = head_to_fp8(x.first(head_dim_), codes);
      for (size_t i = 0; i < head_dim_; ++i) x[i] = scale * fp8_value(codes[i]);
    }
  }
}

void KvStore::copy_block(BlockId from, BlockId to) { block_memory(to) = block_memory(from); }

uint64_t KvStore::committed_bytes() const {
  uint64_t bytes = 0;
  for (const auto& block : blocks_) bytes += block.size() * sizeof(float);
  return bytes;
}

ReferenceOps::ReferenceOps(const Bundle& bundle, const RopeTable& rope_table,
                           const StepBatch& batch, int block_size, KvStore& kv,
                           const HiddenStateProbe& probe)
    : bundle_(bundle),
      spec_(bundle.spec()),
      rope_table_(rope_table),
      batch_(batch),
      block_size_(block_size),
      kv_(kv),
      probe_(probe) {}

Value ReferenceOps::keep(Matrix matrix) {
  values_.push_back(std::move(matrix));
  return Value{static_cast<int>(values_.size()) - 1};
}

Value ReferenceOps::embed(TensorKey table) {
  const WeightView weight = bundle_.weight(table);
  Matrix out(batch_.tokens.size(), static_cast<size_t>(spec_.hidden_size));
  for (size_t t = 0; t < out.rows; ++t) {
    read_row(weight, batch_.tokens[t], out.row(t));
  }
  return keep(std::move(out));
}

Value ReferenceOps::rms_norm(Value x, TensorKey weight, float eps) {
  const Matrix& in = get(x);
  std::vector<float> scale(in.cols);
  read_row(bundle_.weight(weight), 0, scale);
  Matrix out(in.rows, in.cols);
  for (size_t t = 0; t < in.rows; ++t) {
    const double mean = dot(in.row(t), in.row(t)) / static_cast<double>(in.cols);
    const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + double{eps}));
    for (size_t i = 0; i < in.cols; ++i) out.row(t)[i] = scale[i] * (in.row(t)[i] * inverse);
  }
  return keep(std::move(out));
}

Value ReferenceOps::linear(Value x, TensorKey weight) {
  const Matrix& in = get(x);
  const WeightView view = bundle_.weight(weight);
  Matrix out(in.rows, static_cast<size_t>(view.shape[0]));
  std::vector<float> row(in.cols);
  for (size_t n = 0; n < out.cols; ++n) {
    read_row(view, static_cast<int64_t>(n), row);
    for (size_t t = 0; t < in.rows; ++t) out.row(t)[n] = static_cast<float>(dot(in.row(t), row));
  }
  return keep(std::move(out));
}

Value ReferenceOps::rope(Value x, const RopeSpec& rope, int num_heads) {
  Matrix out = get(x);
  const size_t half = static_cast<size_t>(rope.rotary_dim) / 2;
  const size_t head_dim = out.cols / static_cast<size_t>(num_heads);
  std::vector<float> cos(half);
  std::vector<float> sin(half);
  for (size_t t = 0; t < out.rows; ++t) {
    rope_cos_sin(rope_table_, batch_.positions[t], cos, sin);
    for (size_t start = 0; start < out.cols; start += head_dim) {
      const std::span<float> head = out.row(t).subspan(start, head_dim);
      for (size_t i = 0; i < half; ++i) {
        const float a = head[i];
        const float b = head[i + half];
        head[i] = a * cos[i] - b * sin[i];
        head[i + half] = b * cos[i] + a * sin[i];
      }
    }
  }
  return keep(std::move(out));
}

ReferenceOps::Entry ReferenceOps::entry(size_t sequence, int position) const {
  const size_t table = sequence * static_cast<size_t>(batch_.max_blocks);
  return {batch_.block_tables[table + static_cast<size_t>(position / block_size_)],
          position % block_size_};
}

Value ReferenceOps::attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) {
  const Matrix& queries = get(q);
  const auto store = [this](std::span<const float> from, std::span<float> to) {
    std::ranges::copy(from, to.begin());
    kv_.round(to);
  };
  const size_t num_sequences = batch_.sequence_starts.size() - 1;
  Matrix out(queries.rows, queries.cols);
  for (size_t s = 0; s < num_sequences; ++s) {
    const auto begin = static_cast<size_t>(batch_.sequence_starts[s]);
    const auto end = static_cast<size_t>(batch_.sequence_starts[s + 1]);
    for (size_t t = begin; t < end; ++t) {
      const Entry at = entry(s, batch_.positions[t]);
      store(get(k).row(t), kv_.key(at.block, layer, at.offset));
      store(get(v).row(t), kv_.value(at.block, layer, at.offset));
      attend(s, batch_.positions[t], layer, spec, queries.row(t), out.row(t));
    }
  }
  return keep(std::move(out));
}

// One token's heads over its sequence up to its own position; a window of w sees the last w
// positions, its own among them.
void ReferenceOps::attend(size_t sequence, int position, int layer, const LayerSpec& spec,
                          std::span<const float> q, std::span<float> out) {
  const auto head_dim = static_cast<size_t>(spec_.head_dim);
  const auto group = static_cast<size_t>(spec_.num_heads / spec_.num_kv_heads);
  const int first = spec.sliding_window > 0 ? std::max(0, position - spec.sliding_window + 1) : 0;
  std::vector<double> weights(static_cast<size_t>(position - first + 1));
  std::vector<double> mixed(head_dim);
  for (size_t head = 0; head < static_cast<size_t>(spec_.num_heads); ++head) {
    const std::span<const float> query = q.subspan(head * head_dim, head_dim);
    const size_t kv_start = head / group * head_dim;
    double largest = -std::numeric_limits<double>::infinity();
    for (int p = first; p <= position; ++p) {
      const Entry at = entry(sequence, p);
      const auto key = kv_.key(at.block, layer, at.offset).subspan(kv_start, head_dim);
      const double score = dot(query, key) / std::sqrt(static_cast<double>(head_dim));
      weights[static_cast<size_t>(p - first)] = score;
      largest = std::max(largest, score);
    }
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - largest);
    std::ranges::fill(mixed, 0.0);
    for (int p = first; p <= position; ++p) {
      const Entry at = entry(sequence, p);
      const auto value = kv_.value(at.block, layer, at.offset).subspan(kv_start, head_dim);
      const double share = weights[static_cast<size_t>(p - first)] / total;
      for (size_t i = 0; i < head_dim; ++i) mixed[i] += share * double{value[i]};
    }
    for (size_t i = 0; i < head_dim; ++i) {
      out[head * head_dim + i] = static_cast<float>(mixed[i]);
    }
  }
}

Value ReferenceOps::swiglu(Value gate, Value up) {
  Matrix out = get(gate);
  const std::vector<float>& factor = get(up).values;
  for (size_t i = 0; i < out.values.size(); ++i) {
    const double x = out.values[i];
    out.values[i] = static_cast<float>(x / (1.0 + std::exp(-x)) * double{factor[i]});
  }
  return keep(std::move(out));
}

Value ReferenceOps::add(Value a, Value b) {
  Matrix out = get(a);
  const std::vector<float>& other = get(b).values;
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] += other[i];
  return keep(std::move(out));
}

Value ReferenceOps::select_rows(Value x) {
  Matrix out(batch_.logits_rows.size(), get(x).cols);
  for (size_t r = 0; r < out.rows; ++r) {
    const auto token = static_cast<size_t>(batch_.logits_rows[r]);
    std::ranges::copy(get(x).row(token), out.row(r).begin());
  }
  return keep(std::move(out));
}

void ReferenceOps::observe(int layer, Value x) {
  if (probe_) probe_(layer, get(x).values);
}

}  // namespace trtmc::reference
