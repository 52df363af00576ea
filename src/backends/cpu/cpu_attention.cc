#include "backends/cpu/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/kv_bytes.h"
#include "backends/kv_fp8.h"
#include "backends/step_limits.h"
#include "tensor/dtype.h"

namespace trtmc::cpu {
namespace {

// Into a KV head's block: its keys [head_dim, kKvBlockSize], its values [kKvBlockSize, head_dim].
template <typename Element, typename Convert>
void store_head(std::byte* keys, std::byte* values, size_t head_dim, int offset,
                std::span<const float> k, std::span<const float> v, Convert convert) {
  auto* key = reinterpret_cast<Element*>(keys) + offset;
  auto* value = reinterpret_cast<Element*>(values) + static_cast<size_t>(offset) * head_dim;
  for (size_t d = 0; d < k.size(); ++d) {
    key[d * kKvBlockSize] = convert(k[d]);
    value[d] = convert(v[d]);
  }
}

// The running softmax of a tile's heads.
struct TileState {
  std::span<float> q;        // [tokens, group, head_dim]
  std::span<float> mixed;    // Likewise.
  std::span<float> largest;  // [tokens, group]
  std::span<float> sum;      // Likewise.
};

TileState carve(std::span<float> scratch, size_t heads, size_t head_dim) {
  return {.q = scratch.subspan(0, heads * head_dim),
          .mixed = scratch.subspan(heads * head_dim, heads * head_dim),
          .largest = scratch.subspan(2 * heads * head_dim, heads),
          .sum = scratch.subspan(2 * heads * head_dim + heads, heads)};
}

}  // namespace

CpuKvCache::CpuKvCache(const DecoderSpec& spec, KvType type, int num_blocks)
    : num_heads_(spec.num_kv_heads),
      real_head_dim_(spec.head_dim),
      head_dim_(static_cast<size_t>(round_up(spec.head_dim, 16))),
      type_(type),
      block_bytes_(block_bytes(spec, type)),
      half_bytes_(block_bytes_ / (2 * spec.layers.size() * static_cast<size_t>(num_heads_))),
      memory_(block_bytes_ * static_cast<size_t>(num_blocks)),
      touched_(static_cast<size_t>(num_blocks)) {}

uint64_t CpuKvCache::block_bytes(const DecoderSpec& spec, KvType type) {
  DecoderSpec padded = spec;
  padded.head_dim = static_cast<int>(round_up(spec.head_dim, 16));
  return kv_block_bytes(padded, type, kKvBlockSize);
}

void CpuKvCache::touch(BlockId block) {
  if (touched_[static_cast<size_t>(block)]) return;
  touched_[static_cast<size_t>(block)] = true;
  ++num_touched_;
}

std::byte* CpuKvCache::head_data(BlockId block, int layer, int head) const {
  const auto slot =
      static_cast<size_t>(layer) * static_cast<size_t>(num_heads_) + static_cast<size_t>(head);
  return memory_.data() + static_cast<size_t>(block) * block_bytes_ + slot * 2 * half_bytes_;
}

const void* CpuKvCache::keys(BlockId block, int layer, int head) const {
  return head_data(block, layer, head);
}

const void* CpuKvCache::values(BlockId block, int layer, int head) const {
  return head_data(block, layer, head) + half_bytes_;
}

void CpuKvCache::store(BlockId block, int layer, int offset, const float* k, const float* v) {
  const auto width = static_cast<size_t>(real_head_dim_);
  for (int head = 0; head < num_heads_; ++head) {
    std::byte* keys = head_data(block, layer, head);
    const std::span key(k + static_cast<size_t>(head) * width, width);
    const std::span value(v + static_cast<size_t>(head) * width, width);
    if (type_ == KvType::kQ8) {
      store_bytes<int8_t>(keys, offset, key, value, head_to_bytes);
    } else if (type_ == KvType::kFp8) {
      store_bytes<uint8_t>(keys, offset, key, value, head_to_fp8);
    } else if (type_ == KvType::kBF16) {
      store_head<uint16_t>(keys, keys + half_bytes_, head_dim_, offset, key, value, float_to_bf16);
    } else {
      store_head<float>(keys, keys + half_bytes_, head_dim_, offset, key, value,
                        [](float x) { return x; });
    }
  }
}

// The place of the value serves the key on its way: threads of the pool take no memory.
template <typename Code, typename Convert>
void CpuKvCache::store_bytes(std::byte* keys, int offset, std::span<const float> k,
                             std::span<const float> v, Convert convert) const {
  std::byte* values = keys + half_bytes_;
  const size_t codes_bytes = head_dim_ * kKvBlockSize;
  auto* key = reinterpret_cast<Code*>(keys) + offset;
  const std::span value(reinterpret_cast<Code*>(values) + static_cast<size_t>(offset) * head_dim_,
                        v.size());
  reinterpret_cast<float*>(keys + codes_bytes)[offset] = convert(k, value);
  for (size_t d = 0; d < k.size(); ++d) key[d * kKvBlockSize] = value[d];
  reinterpret_cast<float*>(values + codes_bytes)[offset] = convert(v, value);
}

void CpuKvCache::copy_block(BlockId from, BlockId to) {
  touch(to);
  std::memcpy(memory_.data() + static_cast<size_t>(to) * block_bytes_,
              memory_.data() + static_cast<size_t>(from) * block_bytes_, block_bytes_);
}

void append_attention_tiles(const StepBatch& batch, std::vector<AttentionTile>& tiles) {
  for (size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s) {
    const int end = batch.sequence_starts[s + 1];
    for (int first = batch.sequence_starts[s]; first < end; first += kAttentionTileTokens) {
      tiles.push_back({static_cast<int>(s), first, std::min(kAttentionTileTokens, end - first)});
    }
  }
}

size_t attention_scratch_floats(const DecoderSpec& spec) {
  const auto heads =
      size_t{kAttentionTileTokens} * static_cast<size_t>(spec.num_heads / spec.num_kv_heads);
  return heads * (2 * static_cast<size_t>(round_up(spec.head_dim, 16)) + 2);
}

namespace {

// One tile's heads of one KV head, from the queries to the mixed values.
class TileAttention {
 public:
  TileAttention(const AttentionJob& job, const AttentionTile& tile, int kv_head,
                std::span<float> scratch)
      : job_(job),
        tile_(tile),
        kv_head_(kv_head),
        width_(static_cast<size_t>(job.spec.head_dim)),
        head_dim_(static_cast<size_t>(job.cache.padded_head_dim())),
        group_(static_cast<size_t>(job.spec.num_heads / job.spec.num_kv_heads)),
        heads_(static_cast<size_t>(tile.num_tokens) * group_),
        first_position_(job.batch.positions[static_cast<size_t>(tile.first_token)]),
        state_(carve(scratch, heads_, head_dim_)) {}

  void run() {
    start();
    const int last_position = first_position_ + tile_.num_tokens - 1;
    for (int block = seen_from(first_position_) / kKvBlockSize;
         block <= last_position / kKvBlockSize; ++block) {
      attend_block(block);
    }
    finish();
  }

 private:
  // The place of the tile's `head`-th head of `rows` [tokens of the step, stride].
  template <typename Float>
  Float* place(Float* rows, size_t head) const {
    const size_t token = static_cast<size_t>(tile_.first_token) + head / group_;
    const size_t column = (static_cast<size_t>(kv_head_) * group_ + head % group_) * width_;
    return rows + token * static_cast<size_t>(job_.stride) + column;
  }

  // The first position that a query at `position` sees: a window of w is the last w positions.
  int seen_from(int position) const {
    return job_.sliding_window > 0 ? std::max(0, position - job_.sliding_window + 1) : 0;
  }

  void start() {
    std::ranges::fill(state_.largest, -std::numeric_limits<float>::infinity());
    std::ranges::fill(state_.sum, 0.0F);
    std::ranges::fill(state_.mixed, 0.0F);
    std::ranges::fill(state_.q, 0.0F);
    for (size_t h = 0; h < heads_; ++h) {
      std::copy_n(place(job_.q, h), width_, &state_.q[h * head_dim_]);
    }
  }

  // The tile's tokens one after the other, while the block's keys and values are in the cache.
  void attend_block(int block) {
    const size_t table =
        static_cast<size_t>(tile_.sequence) * static_cast<size_t>(job_.batch.max_blocks);
    const BlockId id = job_.batch.block_tables[table + static_cast<size_t>(block)];
    AttentionArgs args{};
    args.num_heads = static_cast<int>(group_);
    args.head_dim = static_cast<int>(head_dim_);
    args.keys = job_.cache.keys(id, job_.layer, kv_head_);
    args.values = job_.cache.values(id, job_.layer, kv_head_);
    args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(width_)));
    const auto kernel = attend_kernel();
    const int start = block * kKvBlockSize;
    for (int t = 0; t < tile_.num_tokens; ++t) {
      args.first = std::max(0, seen_from(first_position_ + t) - start);
      args.last = std::min(kKvBlockSize, first_position_ + t + 1 - start);
      if (args.first >= args.last) continue;
      const size_t head = static_cast<size_t>(t) * group_;
      args.q = &state_.q[head * head_dim_];
      args.mixed = &state_.mixed[head * head_dim_];
      args.largest = &state_.largest[head];
      args.sum = &state_.sum[head];
      kernel(args);
    }
  }

  auto attend_kernel() const -> decltype(KernelTable::attend_f32) {
    switch (job_.cache.type()) {
      case KvType::kF32:
        return job_.kernels.attend_f32;
      case KvType::kBF16:
        return job_.kernels.attend_bf16;
      case KvType::kQ8:
        return job_.kernels.attend_q8;
      case KvType::kFp8:
        return job_.kernels.attend_fp8;
    }
    return nullptr;
  }

  void finish() {
    for (size_t h = 0; h < heads_; ++h) {
      float* mixed = &state_.mixed[h * head_dim_];
      job_.kernels.divide(mixed, state_.sum[h], static_cast<int64_t>(head_dim_), mixed);
      std::copy_n(mixed, width_, place(job_.out, h));
    }
  }

  const AttentionJob& job_;
  const AttentionTile& tile_;
  int kv_head_;
  size_t width_;     // Of a head, and
  size_t head_dim_;  // filled up to a multiple of 16.
  size_t group_;     // Query heads a KV head.
  size_t heads_;     // Of all the tile's tokens.
  int first_position_;
  TileState state_;
};

}  // namespace

void attend(const AttentionJob& job, const AttentionTile& tile, int kv_head,
            std::span<float> scratch) {
  TileAttention(job, tile, kv_head, scratch).run();
}

}  // namespace trtmc::cpu
