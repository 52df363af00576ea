// Tokens a second of a random model in a given shape, beside what the machine can read and multiply
// in the same run. Weights are random: speed does not depend on them.
//
//   decode_bench --layers 12 --dtype bf16 --threads 2
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

#include "backends/backend_loader.h"
#include "bench/roofs.h"
#include "bundle/bundle.h"
#include "tests/support/random_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int layers = 12;  // Of SmolLM3-3B's shape: 1.46 GB in bf16, several times any cache.
  int hidden = 2048;
  int intermediate = 11008;
  int heads = 16;
  int kv_heads = 4;
  int head_dim = 128;
  int vocab = 128256;
  std::string dtype = "bf16";
  int prompt = 128;
  int tokens = 16;
  int batch = 1;
  int repeat = 5;
  std::string bundle;  // Kept there and used again.
  ExecutorOptions executor;
};

DecoderSpec spec_of(const Options& options) {
  DecoderSpec spec{.vocab_size = options.vocab,
                   .hidden_size = options.hidden,
                   .intermediate_size = options.intermediate,
                   .num_heads = options.heads,
                   .num_kv_heads = options.kv_heads,
                   .head_dim = options.head_dim,
                   .context_length = 65536,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 5e6, .rotary_dim = options.head_dim, .scaling = {}},
                   .layers = {}};
  for (int layer = 0; layer < options.layers; ++layer) {
    spec.layers.push_back({.rope = layer % 4 != 3, .sliding_window = 0});
  }
  return spec;
}

// Parameters that every token is multiplied with.
double parameters(const DecoderSpec& spec) {
  double count = 0;
  for (const TensorKey& key : tensor_keys(spec)) {
    count += static_cast<double>(num_elements(tensor_shape(spec, key)));
  }
  return count;
}

struct Range {
  explicit Range(std::vector<double> values) {
    std::ranges::sort(values);
    low = values.front();
    median = values[values.size() / 2];
    high = values.back();
  }
  double low, median, high;
};

// `batch` sequences, each with blocks of its own.
class Sequences {
 public:
  Sequences(Executor& executor, int batch, int context) : executor_(executor), batch_(batch) {
    const int size = executor.limits().block_size;
    max_blocks_ = (context + size - 1) / size;
    tables_.resize(static_cast<size_t>(batch * max_blocks_));
    std::iota(tables_.begin(), tables_.end(), 0);
  }

  // Tokens [position, position + count) of every sequence; logits of the last.
  double seconds(int position, int count) {
    std::vector<TokenId> tokens;
    std::vector<int32_t> positions, starts = {0}, rows;
    for (int s = 0; s < batch_; ++s) {
      for (int i = 0; i < count; ++i) {
        tokens.push_back((position + i) * 7 % 1000 + s);
        positions.push_back(position + i);
      }
      starts.push_back(static_cast<int32_t>(tokens.size()));
      rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
    }
    const auto start = Clock::now();
    executor_.submit({.tokens = tokens,
                      .positions = positions,
                      .sequence_starts = starts,
                      .block_tables = tables_,
                      .max_blocks = max_blocks_,
                      .logits_rows = rows,
                      .adapters = {}});
    executor_.wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  Executor& executor_;
  int batch_;
  int max_blocks_;
  std::vector<BlockId> tables_;
};

std::span<const std::byte> tensor_bytes(const Bundle& bundle) {
  const Section& first = bundle.sections().front();
  const Section& last = bundle.sections().back();
  return {bundle.bytes(first).data(), last.offset + last.bytes - first.offset};
}

void run(const Options& options) {
  const TemporaryFolder folder;
  const std::filesystem::path path = options.bundle.empty() ? folder.path() / "bench.trtmc"
                                                            : std::filesystem::path(options.bundle);
  const DecoderSpec spec = spec_of(options);
  if (!std::filesystem::exists(path)) {
    const auto dtype = parse_dtype(options.dtype);
    if (!dtype) throw CLI::ValidationError("--dtype", "f32, f16 or bf16");
    write_random_bundle(path, spec, *dtype, 1);
  }
  const Bundle bundle(path);
  ExecutorOptions executor_options = options.executor;
  const int context = options.prompt + options.tokens * options.repeat;
  executor_options.max_tokens_per_step = std::max(512, options.batch * options.prompt);
  executor_options.kv_memory_bytes = uint64_t{8} << 30;
  const auto executor = find_backend("cpu", bundle.manifest()).load(bundle, executor_options);
  ThreadPool pool(executor_options.num_threads > 0 ? executor_options.num_threads
                                                   : ThreadPool::default_num_threads());
  const auto weights = tensor_bytes(bundle);
  Sequences sequences(*executor, options.batch, context);
  sequences.seconds(0, 1);  // Maps every page.

  std::vector<double> reads, peaks, prefills, decodes;
  for (int round = 0; round < options.repeat; ++round) {
    reads.push_back(read_bandwidth(pool, weights) / 1e9);
    peaks.push_back(multiply_add_peak(pool) / 1e9);
    prefills.push_back(options.batch * options.prompt / sequences.seconds(0, options.prompt));
    double total = 0;
    for (int t = 0; t < options.tokens; ++t) {
      total += sequences.seconds(options.prompt + round * options.tokens + t, 1);
    }
    decodes.push_back(options.batch * options.tokens / total);
  }
  const Range read(reads), peak(peaks), prefill(prefills), decode(decodes);
  const double operations =
      2 * parameters(spec) - 2.0 * spec.hidden_size * spec.vocab_size;  // Logits of the last only.
  const auto line = [](const char* what, const Range& range, const char* unit) {
    std::printf("%-10s %8.2f  (%.2f to %.2f) %s", what, range.median, range.low, range.high, unit);
  };
  std::printf("model      %d layers, %.3f GB of weights; %s\n", spec.num_layers(),
              static_cast<double>(weights.size()) / 1e9, executor->description().c_str());
  line("read", read, "GB/s of the weights\n");
  line("fp32 peak", peak, "GFLOP/s\n");
  line("prefill", prefill, "tokens/s");
  const double speed = prefill.median * operations / 1e9;
  std::printf(", %.0f GFLOP/s, %.0f %% of the peak\n", speed, 100 * speed / peak.median);
  line("decode", decode, "tokens/s");
  const double bytes = static_cast<double>(weights.size()) * decode.median / options.batch / 1e9;
  std::printf(", %.2f GB/s, %.0f %% of the read\n", bytes, 100 * bytes / read.median);
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the cpu backend on a random model, beside the machine's own");
  app.add_option("--layers", options.layers);
  app.add_option("--hidden", options.hidden);
  app.add_option("--intermediate", options.intermediate);
  app.add_option("--heads", options.heads);
  app.add_option("--kv-heads", options.kv_heads);
  app.add_option("--head-dim", options.head_dim);
  app.add_option("--vocab", options.vocab);
  app.add_option("--dtype", options.dtype, "f32, f16 or bf16");
  app.add_option("--prompt", options.prompt, "Tokens of the prompt");
  app.add_option("--tokens", options.tokens, "Tokens to decode in each round");
  app.add_option("--batch", options.batch, "Sequences at once");
  app.add_option("--repeat", options.repeat, "Rounds");
  app.add_option("--threads", options.executor.num_threads);
  app.add_option("--isa", options.executor.isa);
  app.add_option("--bundle", options.bundle, "Where the model is kept; made if it is not there");
  app.add_flag("--kv-bf16{1}", [&](int64_t) { options.executor.kv_type = KvType::kBF16; });
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "decode_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace trtmc

int main(int argc, char** argv) { return trtmc::main_of(argc, argv); }
