// The CUDA backend against the reference and against itself, operation by operation and fused.
#include <gtest/gtest.h>

#include "backends/backend_loader.h"
#include "base/error.h"
#include "tests/conformance/invariance.h"
#ifdef TRTMC_CUDA
#include "backends/cuda/cuda_executor.h"
#endif

namespace trtmc {
namespace {

const Backend& cuda_backend() {
  for (const Backend* backend : all_backends()) {
    if (backend->name() == "cuda") return *backend;
  }
  std::abort();
}

// Skips where there is no device, with the reason.
class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_backend().unavailable()) {
      GTEST_SKIP() << "skipped: no CUDA device: " << *reason;
    }
  }
};

std::unique_ptr<Executor> load(std::string_view backend, const Bundle& bundle,
                               const ExecutorOptions& options) {
  return find_backend(backend, bundle.manifest()).load(bundle, options);
}

double worst_distance(const Rows& rows, const Rows& expected) {
  double worst = 0;
  for (size_t t = 0; t < rows.size(); ++t) {
    const double distance = relative_distance(rows[t], expected[t]);
    if (!(distance <= worst)) worst = distance;  // A NaN stays.
  }
  return worst;
}

struct Types {
  std::string name;
  DType weights;
  KvType kv;
  ActivationType activations;
};

const std::vector<Types>& all_types() {
  using enum ActivationType;
  static const std::vector<Types> kTypes = {
      {"f32", DType::kF32, KvType::kF32, kF32},
      {"f32_kv_bf16", DType::kF32, KvType::kBF16, kF32},
      {"f16", DType::kF16, KvType::kF32, kF32},
      {"bf16", DType::kBF16, KvType::kF32, kF32},
      {"bf16_kv_bf16", DType::kBF16, KvType::kBF16, kF32},
      {"bf16_activations_bf16", DType::kBF16, KvType::kF32, kBF16},
      {"bf16_all", DType::kBF16, KvType::kBF16, kBF16},
      {"f32_kv_fp8", DType::kF32, KvType::kFp8, kF32},
      {"bf16_kv_fp8", DType::kBF16, KvType::kFp8, kF32},
      {"bf16_kv_fp8_activations_bf16", DType::kBF16, KvType::kFp8, kBF16},
      {"q8_kv_fp8", DType::kQ8, KvType::kFp8, kF32},
      {"q4_kv_fp8_activations_bf16", DType::kQ4, KvType::kFp8, kBF16},
      {"q8", DType::kQ8, KvType::kF32, kF32},
      {"q8_kv_bf16", DType::kQ8, KvType::kBF16, kF32},
      {"q8_all", DType::kQ8, KvType::kBF16, kBF16},
      {"q4", DType::kQ4, KvType::kF32, kF32},
      {"q4_kv_bf16", DType::kQ4, KvType::kBF16, kF32},
      {"q4_all", DType::kQ4, KvType::kBF16, kBF16}};
  return kTypes;
}

using Case = std::tuple<Types, ModelShape>;

class Cuda : public OnCuda, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    spec_ = spec_of(std::get<1>(GetParam()));
    model_ = std::make_unique<RandomModel>(spec_, types().weights);
    bits_ = {.make = [this] { return make(); },
             .tokens = random_tokens(spec_, Invariance::kNumTokens, 1),
             .whole = {},
             .spec = spec_};
    bits_.whole = run_whole(*make(), bits_.tokens);
  }

  const Types& types() const { return std::get<0>(GetParam()); }

  ExecutorOptions options() const {
    ExecutorOptions options;
    options.kv_type = types().kv;
    options.activation_type = types().activations;
    options.kv_memory_bytes = uint64_t{1} << 23;
    return options;
  }
  std::unique_ptr<Executor> make() const { return load("cuda", model_->bundle(), options()); }

  DecoderSpec spec_;
  std::unique_ptr<RandomModel> model_;
  Invariance bits_;
};

// As tight as the other backends where nothing is rounded; a key that moves over the border between
// two bf16 values is off by 2^-8 of itself, as is every activation that is rounded. What fp8 adds
// is in agreement_test.cc: rounded activations move so many keys over a border that the caches are
// as far apart as all of the rounding makes them, at most.
double tolerance_of(KvType kv, ActivationType activations) {
  const bool is_rounded = activations == ActivationType::kBF16;
  if (kv == KvType::kFp8) return is_rounded ? 9e-2 : 6e-3;
  if (is_rounded) return 3e-2;
  return kv == KvType::kBF16 ? 1e-3 : 1e-5;
}

TEST_P(Cuda, AgreesWithTheReference) {
  ExecutorOptions plain;
  plain.kv_type = types().kv;
  const Rows expected = run_whole(*load("reference", model_->bundle(), plain), bits_.tokens);
  const double worst = worst_distance(bits_.whole, expected);
  EXPECT_LE(worst, tolerance_of(types().kv, types().activations));
  if (types().activations == ActivationType::kBF16) {
    EXPECT_GT(worst, 1e-3);
  }
  RecordProperty("relative_l2", std::to_string(worst));
}

TEST_P(Cuda, BitsDoNotChangeWithTheChunks) { bits_.expect_same_in_chunks(); }
TEST_P(Cuda, BitsDoNotChangeWithTheNeighbours) { bits_.expect_same_beside_neighbours(); }
TEST_P(Cuda, BitsDoNotChangeWithTheBlockTable) { bits_.expect_same_with_any_block_table(); }
TEST_P(Cuda, BitsDoNotChangeWithACopiedBlock) { bits_.expect_same_with_a_copied_block(); }
TEST_P(Cuda, BitsDoNotChangeWithStaleMemory) { bits_.expect_same_with_stale_memory(); }

#ifdef TRTMC_CUDA
TEST_P(Cuda, BitsDoNotChangeWithTheGrain) {
  const auto operations =
      cuda::make_cuda_executor(model_->bundle(), options(), cuda::Grain::kOperation);
  EXPECT_EQ(run_chunked(*operations, bits_.tokens, {60, 1}, block_range(*operations, 75)),
            bits_.whole);
}

TEST_P(Cuda, BitsDoNotChangeWithoutGraphs) {
  const auto eager =
      cuda::make_cuda_executor(model_->bundle(), options(), cuda::Grain::kBlock, false);
  EXPECT_EQ(run_chunked(*eager, bits_.tokens, {60, 1}, block_range(*eager, 75)), bits_.whole);
}
#endif

std::string case_name(const testing::TestParamInfo<Case>& of) {
  return std::get<0>(of.param).name + "_" + std::get<1>(of.param).name;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Cuda,
                         testing::Combine(testing::ValuesIn(all_types()),
                                          testing::ValuesIn(model_shapes())),
                         case_name);

struct Precision {
  KvType kv;
  ActivationType activations;
};

// A sequence of so many chunks that joining them takes several rounds (kernels/attention_join.cuh).
class CudaDeep : public OnCuda, public testing::WithParamInterface<Precision> {};

// One token alone, whose chunks are shared out, and beside another, where a block walks them.
TEST_P(CudaDeep, JoinsAnyNumberOfChunksToTheSameBits) {
  DecoderSpec spec = spec_of(model_shapes()[3]);
  spec.context_length = 34000;
  const RandomModel model(spec, DType::kBF16);
  ExecutorOptions options;
  options.kv_type = GetParam().kv;
  options.activation_type = GetParam().activations;
  const auto executor = load("cuda", model.bundle(), options);
  const std::vector<TokenId> tokens = random_tokens(spec, spec.context_length, 4);
  const auto table = block_range(*executor, spec.context_length);
  int read = 0;
  const auto some = [&](int first, int end) {
    return std::vector<TokenId>(tokens.begin() + first, tokens.begin() + end);
  };
  // 2 and 16 chunks, 17, 33; 512 and 513: the borders of what is asked for or found at once.
  for (const int depth : {100, 1023, 1024, 2048, 32767, 32768, 33500}) {
    while (read < depth) {
      const int end = std::min(depth, read + 4096);
      run_step(*executor, {{some(read, end), read, table}});
      read = end;
    }
    const Rows alone = run_step(*executor, {{some(depth, depth + 1), depth, table}});
    const Rows both = run_step(*executor, {{some(depth, depth + 2), depth, table}});
    EXPECT_EQ(alone[0], both[0]) << depth;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, CudaDeep,
                         testing::Values(Precision{KvType::kF32, ActivationType::kF32},
                                         Precision{KvType::kBF16, ActivationType::kF32},
                                         Precision{KvType::kBF16, ActivationType::kBF16},
                                         Precision{KvType::kFp8, ActivationType::kF32},
                                         Precision{KvType::kFp8, ActivationType::kBF16}),
                         [](const auto& of) {
                           const bool is_rounded = of.param.activations == ActivationType::kBF16;
                           return std::string(kv_type_name(of.param.kv)) +
                                  (is_rounded ? "_activations_bf16" : "");
                         });

// Sums as long as a real model's, over many segments of k, and a context of several chunks.
class CudaLong : public OnCuda, public testing::WithParamInterface<DType> {
 protected:
  static constexpr int kNumTokens = 700;

  static DecoderSpec spec() {
    DecoderSpec spec = spec_of(model_shapes()[2]);  // Heads of 128, four to one.
    spec.hidden_size = 1024;
    spec.intermediate_size = 3000;
    spec.num_heads = 8;
    spec.num_kv_heads = 2;
    spec.context_length = 1024;
    spec.layers[2].sliding_window = 300;
    return spec;
  }

  RandomModel model_{spec(), GetParam()};
  std::vector<TokenId> tokens_ = random_tokens(spec(), kNumTokens, 1);
};

// The cpu backend multiplies quantised weights by bytes, the reference one by floats, which takes
// long: the first tokens do.
TEST_P(CudaLong, AgreesWithAnotherBackendAndWithItself) {
  const bool quantized = is_quantized(GetParam());
  const std::vector<TokenId> compared(tokens_.begin(),
                                      tokens_.begin() + (quantized ? 40 : kNumTokens));
  for (const Precision& of : {Precision{KvType::kF32, ActivationType::kF32},
                              {KvType::kBF16, ActivationType::kF32},
                              {KvType::kBF16, ActivationType::kBF16},
                              {KvType::kFp8, ActivationType::kF32},
                              {KvType::kFp8, ActivationType::kBF16}}) {
    ExecutorOptions options;
    options.kv_type = of.kv;
    options.max_tokens_per_step = kNumTokens;
    const Rows expected =
        run_whole(*load(quantized ? "reference" : "cpu", model_.bundle(), options), compared);
    options.activation_type = of.activations;
    const auto cuda = load("cuda", model_.bundle(), options);
    const Rows whole = run_whole(*cuda, tokens_);
    const Rows first(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(compared.size()));
    EXPECT_LE(worst_distance(first, expected), tolerance_of(of.kv, of.activations));
    const auto table = block_range(*cuda, kNumTokens);
    for (const std::vector<int>& chunks : {std::vector<int>{400, 16, 17, 160, 1}, {100, 33, 70}}) {
      EXPECT_EQ(run_chunked(*cuda, tokens_, chunks, table), whole);
    }
  }
}

// Sequences side by side, each further than the one before it, and one alone.
TEST_P(CudaLong, IsTheSameInABatchOfAnySize) {
  for (const Precision& of : {Precision{KvType::kF32, ActivationType::kF32},
                              {KvType::kBF16, ActivationType::kBF16},
                              {KvType::kFp8, ActivationType::kF32},
                              {KvType::kFp8, ActivationType::kBF16}}) {
    ExecutorOptions options;
    options.kv_memory_bytes = uint64_t{1} << 28;
    options.max_sequences_per_step = 130;
    options.kv_type = of.kv;
    options.activation_type = of.activations;
    const auto executor = load("cuda", model_.bundle(), options);
    const std::vector<TokenId> prompt(tokens_.begin(), tokens_.begin() + 300);
    const auto table = [&](int s) { return block_range(*executor, 320, s * 10); };
    run_step(*executor, {{prompt, 0, table(0)}});
    const Rows alone = run_step(*executor, {{{7}, 300, table(0)}});
    for (const int size : {2, 3, 5, 8, 9, 16, 17, 40, 64, 65, 130}) {
      std::vector<Chunk> chunks;
      for (int s = 0; s < size; ++s) {
        if (s > 0) run_step(*executor, {{{tokens_.begin(), tokens_.begin() + s}, 0, table(s)}});
        chunks.push_back({{9}, s, table(s)});
      }
      run_step(*executor, {{prompt, 0, table(0)}});
      chunks[0] = {{7}, 300, table(0)};
      EXPECT_EQ(run_step(*executor, chunks)[0], alone[0]) << size;
    }
  }
}

// The device picks the token that the host picks from the same logits.
TEST_P(CudaLong, SamplesGreedilyAsTheHostDoes) {
  const auto executor = load("cuda", model_.bundle(), {});
  run_step(*executor, {{{tokens_.begin(), tokens_.begin() + 20}, 0, block_range(*executor, 32)}});
  const std::vector<int32_t> rows{0, 1, 2};
  const std::vector<TokenId> tokens{3, 4, 5};
  const std::vector<int32_t> positions{20, 21, 22}, starts{0, 3};
  executor->submit({.tokens = tokens,
                    .positions = positions,
                    .sequence_starts = starts,
                    .block_tables = std::vector<BlockId>{0},
                    .max_blocks = 1,
                    .logits_rows = rows,
                    .adapters = {}});
  const Logits& logits = executor->wait();
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<float> row(static_cast<size_t>(logits.vocab_size()));
  for (const int top_logprobs : {-1, 0, 3}) {
    for (const int32_t r : rows) {
      const SampleRow of{.row = r,
                         .params = &greedy,
                         .draw = 0,
                         .counts = {},
                         .allowed = {},
                         .top_logprobs = top_logprobs};
      Sampled on_device;
      logits.sample({&of, 1}, {&on_device, 1});
      logits.copy_row(r, row);
      const Sampled on_host = sample_token(row, of);
      EXPECT_EQ(on_device.token, on_host.token);
      EXPECT_NEAR(on_device.logprob, on_host.logprob, 1e-5);
      EXPECT_EQ(on_device.top.size(), on_host.top.size());
    }
  }
}

TEST_P(CudaLong, RefusesMoreKvMemoryThanThereIs) {
  ExecutorOptions options;
  options.kv_memory_bytes = uint64_t{1} << 45;
  try {
    load("cuda", model_.bundle(), options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
    EXPECT_STREQ(error.what(), "memory for keys and values: the GPU has too little free memory");
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, CudaLong,
                         testing::Values(DType::kBF16, DType::kQ8, DType::kQ4),
                         [](const auto& of) { return std::string(dtype_name(of.param)); });

}  // namespace
}  // namespace trtmc
