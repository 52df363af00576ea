#include "measure/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "measure/roofs.h"
#include "model/tensor_key.h"

namespace trtmc {
namespace {

using Clock = std::chrono::steady_clock;

// The weights, which lie one behind the other.
std::span<const std::byte> tensor_bytes(const Bundle& bundle) {
  std::span<const std::byte> all;
  for (const Section& section : bundle.sections()) {
    if (section.kind != SectionKind::kTensor) continue;
    const std::span<const std::byte> bytes = bundle.bytes(section);
    if (all.empty()) all = bytes;
    all = {all.data(), static_cast<size_t>(bytes.data() + bytes.size() - all.data())};
  }
  return all;
}

// What a step reads of the weights: of an embedding that is no head, a few rows only.
uint64_t weight_bytes_of(const Bundle& bundle) {
  uint64_t bytes = tensor_bytes(bundle).size();
  if (!bundle.spec().tied_embeddings) {
    bytes -= bundle.find(to_string({Role::kEmbedding}))->bytes;
  }
  return bytes;
}

// Whose products are of bytes.
bool has_quantized_weights(const Bundle& bundle) {
  return std::ranges::any_of(bundle.sections(), [](const Section& section) {
    return section.kind == SectionKind::kTensor && is_quantized(section.dtype);
  });
}

uint64_t kv_bytes_per_token(const Executor& executor) {
  const Limits limits = executor.limits();
  return executor.memory().kv_budget_bytes / static_cast<uint64_t>(limits.num_blocks) /
         static_cast<uint64_t>(limits.block_size);
}

// Operations of the layers' products for one token, and of the head's for one row of logits.
struct ProductOperations {
  explicit ProductOperations(const DecoderSpec& spec) {
    for (const TensorKey& key : tensor_keys(spec)) {
      const double operations = 2.0 * static_cast<double>(num_elements(tensor_shape(spec, key)));
      if (key.layer >= 0 && !is_norm(key.role)) token += operations;
    }
    head = 2.0 * spec.hidden_size * spec.vocab_size;
  }
  double token = 0;
  double head;
};

uint64_t hash_of(const Logits& logits) {
  std::vector<float> row(static_cast<size_t>(logits.vocab_size()));
  uint64_t hash = 0;
  for (int i = 0; i < logits.num_rows(); ++i) {
    logits.copy_row(i, row);
    hash = hash64(std::as_bytes(std::span(row)), hash);
  }
  return hash;
}

// Any ids do; those near the start of a vocabulary are in all of them.
TokenId token_at(int sequence, int position, int vocab_size) {
  return static_cast<TokenId>((int64_t{position} * 7 + sequence) % std::min(vocab_size, 1000));
}

}  // namespace

std::string_view to_string(SpeedKind kind) {
  return kind == SpeedKind::kPrefill ? "prefill" : "decode";
}

Range::Range(std::vector<double> values) {
  std::ranges::sort(values);
  min = values.front();
  median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  max = values.back();
}

Work work_of(const DecoderSpec& spec, uint64_t weight_bytes, uint64_t kv_bytes_per_token,
             const SpeedCase& of, int chunk) {
  const ProductOperations products(spec);
  const double layers = spec.num_layers();
  const double kv_bytes = static_cast<double>(kv_bytes_per_token) / layers;  // Of one layer.
  Work work;
  for (int done = 0; done < of.tokens; done += chunk) {
    const int count = std::min(chunk, of.tokens - done);
    const double first = of.depth + done, last = first + count;  // Positions of the chunk.
    work.bytes += static_cast<double>(weight_bytes);
    work.operations += of.batch * (count * products.token + products.head);
    for (const LayerSpec& layer : spec.layers) {
      const double window = layer.sliding_window > 0 ? layer.sliding_window : last;
      // What a query in the chunk's middle sees stands for what each of them does.
      const double seen = std::min(window, (first + 1 + last) / 2);
      work.bytes += of.batch * kv_bytes * std::min(last, window + count - 1);
      work.operations += of.batch * count * seen * 4.0 * spec.q_width();
    }
  }
  return work;
}

SpeedMeter::SpeedMeter(const Bundle& bundle, Executor& executor)
    : bundle_(bundle), executor_(executor) {}

Speed SpeedMeter::measure(const SpeedCase& of, int repeat) {
  lay_out(of);
  fill(of);
  run(of);
  ThreadPool pool(executor_.num_threads(chunk_of(of) * of.batch));
  std::vector<double> reads, copies, multiplies, speeds;
  uint64_t logits_hash = 0;
  for (int i = 0; i < repeat; ++i) {
    const DeviceRoofs now = roofs(pool);
    reads.push_back(now.read_bytes_per_second);
    copies.push_back(now.copy_bytes_per_second);
    multiplies.push_back(now.operations_per_second);
    const Round round = run(of);
    speeds.push_back(static_cast<double>(of.tokens) * of.batch / round.seconds);
    logits_hash = round.logits_hash;
  }
  const Range tokens_per_second(std::move(speeds));
  const Work work = work_of(bundle_.spec(), weight_bytes_of(bundle_), kv_bytes_per_token(executor_),
                            of, chunk_of(of));
  const double rounds_per_second =
      tokens_per_second.median / (static_cast<double>(of.tokens) * of.batch);
  Speed speed{.of = of,
              .tokens_per_second = tokens_per_second,
              .bytes_per_second = work.bytes * rounds_per_second,
              .operations_per_second = work.operations * rounds_per_second,
              .read_roof = Range(std::move(reads)).median,
              .copy_roof = Range(std::move(copies)).median,
              .multiply_roof = Range(std::move(multiplies)).median,
              .roof_share = 0,
              .num_threads = pool.num_threads(),
              .logits_hash = logits_hash};
  if (of.kind == SpeedKind::kDecode) {
    speed.roof_share = speed.bytes_per_second / speed.read_roof;
  } else if (speed.multiply_roof > 0) {
    speed.roof_share = speed.operations_per_second / speed.multiply_roof;
  }
  return speed;
}

DeviceRoofs SpeedMeter::roofs(ThreadPool& pool) {
  if (const auto of_device = executor_.measure_roofs()) return *of_device;
  return {.read_bytes_per_second = read_bandwidth(pool, tensor_bytes(bundle_)),
          .copy_bytes_per_second = 0,
          .operations_per_second =
              has_quantized_weights(bundle_) ? byte_dot_peak(pool) : multiply_add_peak(pool)};
}

int SpeedMeter::chunk_of(const SpeedCase& of) const {
  if (of.kind == SpeedKind::kDecode) return 1;
  return std::max(1, std::min(of.tokens, executor_.limits().max_tokens_per_step / of.batch));
}

// Blocks for every sequence, each with its own.
void SpeedMeter::lay_out(const SpeedCase& of) {
  const Limits limits = executor_.limits();
  const int64_t length = int64_t{of.depth} + of.tokens;
  const int64_t blocks = (length + limits.block_size - 1) / limits.block_size;
  if (blocks * of.batch > limits.num_blocks) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} sequences of {} tokens, but KV memory holds {} in all", of.batch,
                            length, int64_t{limits.num_blocks} * limits.block_size),
                "give more with --kv-memory, or ask for less");
  }
  const int most = std::min(limits.max_sequences_per_step, limits.max_tokens_per_step);
  if (of.batch > most) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a batch of {}, but a step takes {} sequences", of.batch, most));
  }
  max_blocks_ = static_cast<int>(blocks);
  block_tables_.resize(static_cast<size_t>(blocks * of.batch));
  std::iota(block_tables_.begin(), block_tables_.end(), BlockId{0});
}

// The tokens before the measured ones. One block is computed; its copies take as long to read.
void SpeedMeter::fill(const SpeedCase& of) {
  if (of.depth == 0) return;
  const int block_size = executor_.limits().block_size;
  const SpeedCase one{.kind = of.kind, .tokens = of.tokens, .depth = 0, .batch = 1};
  step(one, 0, std::min({block_size, of.depth, executor_.limits().max_tokens_per_step}));
  const int filled = (of.depth + block_size - 1) / block_size;
  for (int sequence = 0; sequence < of.batch; ++sequence) {
    for (int block = 0; block < filled; ++block) {
      const size_t row = static_cast<size_t>(sequence) * static_cast<size_t>(max_blocks_);
      const BlockId to = block_tables_[row + static_cast<size_t>(block)];
      if (to != block_tables_[0]) executor_.copy_block(block_tables_[0], to);
    }
  }
}

SpeedMeter::Round SpeedMeter::run(const SpeedCase& of) {
  const int chunk = chunk_of(of);
  const auto start = Clock::now();
  const Logits* logits = nullptr;
  for (int done = 0; done < of.tokens; done += chunk) {
    logits = &step(of, of.depth + done, std::min(chunk, of.tokens - done));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {seconds, hash_of(*logits)};
}

// Tokens [position, position + count) of every sequence; logits of the last of each.
const Logits& SpeedMeter::step(const SpeedCase& of, int position, int count) {
  const auto blocks = static_cast<size_t>(max_blocks_);
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions, starts = {0}, rows;
  for (int sequence = 0; sequence < of.batch; ++sequence) {
    for (int i = 0; i < count; ++i) {
      tokens.push_back(token_at(sequence, position + i, bundle_.spec().vocab_size));
      positions.push_back(position + i);
    }
    starts.push_back(static_cast<int32_t>(tokens.size()));
    rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
  }
  executor_.submit({.tokens = tokens,
                    .positions = positions,
                    .sequence_starts = starts,
                    .block_tables = std::span(block_tables_).first(rows.size() * blocks),
                    .max_blocks = max_blocks_,
                    .logits_rows = rows,
                    .adapters = {}});
  return executor_.wait();
}

}  // namespace trtmc
