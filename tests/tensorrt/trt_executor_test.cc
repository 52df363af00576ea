// The TensorRT backend's executor on a fake that computes what NvInfer.h says of each layer: that
// the network, its profiles, weights, caches, masks and steps are right, as far as that text goes.
// Of TensorRT itself it proves nothing.
#include "backends/tensorrt/trt_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/backend_loader.h"
#include "backends/tensorrt/nvinfer_log.h"
#include "base/error.h"
#include "tests/conformance/invariance.h"
#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/tensorrt/fake_cuda.h"
#include "tests/tensorrt/fake_nvinfer.h"

namespace trtmc::tensorrt {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int kVersion = NV_TENSORRT_MAJOR * 10000 + NV_TENSORRT_MINOR * 100;
constexpr bool kHasNativeKv = NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 15;
constexpr uint64_t kPlenty = uint64_t{1} << 40;
constexpr int kContext = 600;  // More than two extents of the route in place.

DecoderSpec spec_with(std::vector<LayerSpec> layers, int head_dim = 64) {
  DecoderSpec spec = spec_of({"", 4, 2, head_dim});
  spec.context_length = kContext;
  spec.layers = std::move(layers);
  return spec;
}

DecoderSpec full_attention() { return spec_with({{true, 0}, {false, 0}, {true, 0}}); }

// A route, and how it comes to be taken.
struct RouteCase {
  std::string name;
  DType precision;
  std::vector<int> fp32_layers;
  bool few_bytes;     // Of free memory: too few for two engines.
  double most_error;  // Relative, of a row of logits.
  DecoderSpec spec;
  std::string described;
};

void PrintTo(const RouteCase& route_case, std::ostream* out) { *out << route_case.name; }

std::vector<RouteCase> route_cases() {
  // Rounding to bf16 or f16 after each operation of a model of random weights.
  constexpr double kF32 = 1e-5;
  constexpr double kF16 = 1e-2;
  constexpr double kBF16 = 6e-2;
  const DecoderSpec windows = spec_with({{true, 21}, {false, 0}, {true, 3}}, 16);
  std::vector<RouteCase> cases = {
      {"StandardF32", DType::kF32, {}, false, kF32, full_attention(), "standard, f32"},
      {"StandardF16", DType::kF16, {}, false, kF16, full_attention(), "standard, f16"},
      {"StandardWindows", DType::kF32, {}, false, kF32, windows, "standard, f32"},
      {"StandardWindowsBf16", DType::kBF16, {}, false, kBF16, windows, "standard, bf16"},
      {"StandardF16LayerF32", DType::kF16, {1}, false, kF16, full_attention(), "standard, f16"},
      {"DualF32", DType::kF32, {}, true, kF32, full_attention(), "dual_profile, f32"},
      {"DualWindowsBf16", DType::kBF16, {}, true, kBF16, windows, "dual_profile, bf16"},
      {"DualF16LayersF32", DType::kF16, {0, 2}, true, kF16, full_attention(), "dual_profile, f16"}};
  if (kHasNativeKv) {
    cases.push_back(
        {"NativeBf16", DType::kBF16, {}, false, kBF16, full_attention(), "native_kv, bf16"});
    // All layers in float32: what is left of bf16 is the embedding and the output.
    cases.push_back({"NativeLayersF32",
                     DType::kBF16,
                     {0, 1, 2},
                     false,
                     kF16,
                     full_attention(),
                     "native_kv, bf16"});
  } else {
    cases.push_back(
        {"StandardBf16", DType::kBF16, {}, false, kBF16, full_attention(), "standard, bf16"});
    cases.push_back(
        {"DualBf16", DType::kBF16, {}, true, kBF16, full_attention(), "dual_profile, bf16"});
  }
  return cases;
}

class OnAFake : public testing::TestWithParam<RouteCase> {
 protected:
  void SetUp() override {
    model_ = std::make_unique<RandomModel>(GetParam().spec, GetParam().precision);
    options_.max_tokens_per_step = 128;
    options_.precision = GetParam().precision;
    options_.fp32_layers = GetParam().fp32_layers;
    options_.kv_memory_bytes = 64 * 1024 * 1024;
  }
  void TearDown() override { fake_cuda::set_free_bytes(kPlenty); }

  std::unique_ptr<Executor> make() {
    if (GetParam().few_bytes) fake_cuda::set_free_bytes(few_bytes());
    return make_trt_executor(fake_nvinfer::library(kVersion), model_->bundle(), options_,
                             PlanCache(std::nullopt));
  }

  // Enough for one engine and not for two.
  uint64_t few_bytes() const {
    uint64_t weights = 0;
    const std::vector<DType> types =
        layer_precisions(GetParam().spec, GetParam().precision, GetParam().fp32_layers);
    for (const TensorKey& key : tensor_keys(GetParam().spec)) {
      const DType type =
          key.layer < 0 ? GetParam().precision : types[static_cast<size_t>(key.layer)];
      weights += static_cast<uint64_t>(num_elements(tensor_shape(GetParam().spec, key))) *
                 element_bytes(type);
    }
    uint64_t kv = 0;
    for (const DType type : types) {
      kv += static_cast<uint64_t>(2 * GetParam().spec.kv_width() * kContext) * element_bytes(type);
    }
    return weights + 2 * kv + weights / 2;
  }

  Rows reference(const std::vector<TokenId>& tokens) const {
    const auto executor =
        find_backend("reference", model_->bundle().manifest()).load(model_->bundle(), {});
    return run_whole(*executor, tokens);
  }

  Invariance invariance(const std::vector<TokenId>& tokens) {
    return {.make = [this] { return make(); },
            .tokens = tokens,
            .whole = run_whole(*make(), tokens),
            .spec = GetParam().spec};
  }

  std::unique_ptr<RandomModel> model_;
  ExecutorOptions options_;
};

TEST_P(OnAFake, AgreesWithTheReference) {
  const auto executor = make();
  EXPECT_THAT(executor->description(), HasSubstr(GetParam().described));
  const auto tokens = random_tokens(GetParam().spec, 60, 1);
  const Rows expected = reference(tokens);
  const Rows rows = run_chunked(*executor, tokens, {40, 1}, {0});
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    EXPECT_LE(relative_distance(rows[t], expected[t]), GetParam().most_error) << t;
  }
}

TEST_P(OnAFake, GivesTheSameBitsInChunksAndInCompany) {
  const auto tokens = random_tokens(GetParam().spec, Invariance::kNumTokens, 1);
  const Invariance same = invariance(tokens);
  same.expect_same_in_chunks();
  same.expect_same_beside_neighbours();
  same.expect_same_with_stale_memory();
}

TEST_P(OnAFake, TakesBackTokensThatWereNotToStay) {
  const auto tokens = random_tokens(GetParam().spec, 40, 1);
  const auto executor = make();
  const Rows whole = run_whole(*executor, tokens);
  const auto wrong = random_tokens(GetParam().spec, 7, 5);
  const std::vector<TokenId> head(tokens.begin(), tokens.begin() + 20);
  const std::vector<TokenId> tail(tokens.begin() + 20, tokens.end());
  run_step(*executor, {{head, 0, {1}}});
  run_step(*executor, {{wrong, 20, {1}}});
  EXPECT_EQ(run_step(*executor, {{tail, 20, {1}}}), Rows(whole.begin() + 20, whole.end()));
}

TEST_P(OnAFake, GoesOnFromACopiedBlock) {
  const auto tokens = random_tokens(GetParam().spec, 40, 1);
  const auto executor = make();
  const Rows whole = run_whole(*executor, tokens);
  const std::vector<TokenId> head(tokens.begin(), tokens.begin() + 30);
  const std::vector<TokenId> tail(tokens.begin() + 30, tokens.end());
  run_step(*executor, {{head, 0, {2}}});
  executor->copy_block(2, 4);
  run_step(*executor, {{{1, 2, 3}, 30, {2}}});  // Goes its own way in the original.
  EXPECT_EQ(run_step(*executor, {{tail, 30, {4}}}), Rows(whole.begin() + 30, whole.end()));
}

TEST_P(OnAFake, ReadsTokensInUseAndNotTheCapacity) {
  const auto executor = make();
  const auto tokens = random_tokens(GetParam().spec, 9, 1);
  run_step(*executor, {{tokens, 0, {0}}});
  const fake_nvinfer::Counts before = fake_nvinfer::counts();
  run_step(*executor, {{{1}, 9, {0}}});
  const int layers = GetParam().spec.num_layers();
  EXPECT_EQ(fake_nvinfer::counts().attentions - before.attentions, layers);
  const int64_t read = (fake_nvinfer::counts().attended - before.attended) / layers;
  const bool in_place = GetParam().described.starts_with("native_kv");
  EXPECT_EQ(read, in_place ? 256 : 10);
  EXPECT_LT(read, kContext);
}

INSTANTIATE_TEST_SUITE_P(TensorRt, OnAFake, testing::ValuesIn(route_cases()),
                         [](const auto& route_case) { return route_case.param.name; });

// ---- What does not depend on the route.

class TrtExecutorTest : public testing::Test {
 protected:
  void TearDown() override { fake_cuda::set_free_bytes(kPlenty); }

  std::unique_ptr<Executor> make(const RandomModel& model, ExecutorOptions options,
                                 const PlanCache& cache = PlanCache(std::nullopt),
                                 int version = kVersion) {
    return make_trt_executor(fake_nvinfer::library(version), model.bundle(), options, cache);
  }
};

TEST_F(TrtExecutorTest, LendsWholeSequencesAsBlocks) {
  const RandomModel model(full_attention(), DType::kBF16);
  const Limits limits = make(model, {})->limits();
  EXPECT_EQ(limits.num_blocks, 1);
  EXPECT_EQ(limits.block_size, kContext);
  ExecutorOptions options;
  options.context_length = 100;
  EXPECT_EQ(make(model, options)->limits().block_size, 100);
}

TEST_F(TrtExecutorTest, BuildsWithoutTf32AndWithoutWeights) {
  const RandomModel model(full_attention(), DType::kF32);
  make(model, {});
  EXPECT_EQ(fake_nvinfer::last_build(),
            "profiles 1\nTF32 false\nstripped true\nidentical refit true\ntimes \"\"\n");
}

TEST_F(TrtExecutorTest, FindsItsEnginesAgain) {
  const TemporaryFolder folder;
  const PlanCache cache(folder.path());
  const RandomModel model(full_attention(), DType::kF32);
  const auto tokens = random_tokens(full_attention(), 10, 1);
  const int builds = fake_nvinfer::counts().builds;
  const Rows first = run_whole(*make(model, {}, cache), tokens);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);  // Prompts, and single tokens.
  const int refits = fake_nvinfer::counts().refits;
  EXPECT_EQ(run_whole(*make(model, {}, cache), tokens), first);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);
  EXPECT_EQ(fake_nvinfer::counts().refits, refits + 2);  // The weights come from the bundle.
}

TEST_F(TrtExecutorTest, BuildsAgainForAnotherContextWithTheTimesMeasuredBefore) {
  const TemporaryFolder folder;
  const PlanCache cache(folder.path());
  const RandomModel model(full_attention(), DType::kF32);
  make(model, {}, cache);
  const int builds = fake_nvinfer::counts().builds;
  ExecutorOptions options;
  options.context_length = 100;
  make(model, options, cache);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);
  EXPECT_THAT(fake_nvinfer::last_build(), HasSubstr("times \"times\""));
}

TEST_F(TrtExecutorTest, BuildsAgainWhenAKeptEngineIsOfNoUse) {
  const TemporaryFolder folder;
  const PlanCache cache(folder.path());
  const RandomModel model(full_attention(), DType::kF32);
  make(model, {}, cache);
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    if (file.path().extension() != ".plan") continue;
    const std::string text = "no engine";
    cache.keep(file.path().filename().string(), std::as_bytes(std::span(text)));
  }
  const int builds = fake_nvinfer::counts().builds;
  make(model, {}, cache);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);
}

TEST_F(TrtExecutorTest, BuildsAgainWhenAKeptEngineDoesNotTakeTheWeights) {
  const TemporaryFolder folder;
  const TemporaryFolder other_folder;
  const PlanCache cache(folder.path());
  const PlanCache other_cache(other_folder.path());
  const RandomModel model(full_attention(), DType::kF32);
  const auto tokens = random_tokens(full_attention(), 10, 1);
  const Rows first = run_whole(*make(model, {}, cache), tokens);
  make(RandomModel(full_attention(), DType::kF16), {}, other_cache);
  std::optional<std::vector<std::byte>> other;
  for (const auto& file : std::filesystem::directory_iterator(other_folder.path())) {
    if (file.path().extension() == ".plan") other = other_cache.find(file.path().filename());
  }
  ASSERT_TRUE(other);
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    if (file.path().extension() == ".plan") cache.keep(file.path().filename(), *other);
  }
  const int builds = fake_nvinfer::counts().builds;
  const CapturedLog log;
  EXPECT_EQ(run_whole(*make(model, {}, cache), tokens), first);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("an engine that was built before is not used: "
                                              "TensorRT does not take the weights")));
  make(model, {}, cache);
  EXPECT_EQ(fake_nvinfer::counts().builds, builds + 2);  // The new ones are kept.
}

// A prompt of one token shares a context with longer ones.
TEST_F(TrtExecutorTest, BindsAPromptOfOneTokenAnewAfterALongerOne) {
  const RandomModel model(full_attention(), DType::kBF16);
  ExecutorOptions options;
  options.kv_memory_bytes = 64 * 1024 * 1024;
  const auto executor = make(model, options);
  const auto tokens = random_tokens(full_attention(), 12, 1);
  const auto others = random_tokens(full_attention(), 12, 5);
  const Rows whole = run_whole(*make(model, options), tokens);
  const Rows whole_others = run_whole(*make(model, options), others);
  run_step(*executor, {{others, 0, {2}}});  // The memory for logits stays where it is from here on.
  run_step(*executor, {{{others[0]}, 0, {0}}});
  EXPECT_EQ(run_step(*executor, {{others, 0, {1}}}), whole_others);
  EXPECT_EQ(run_step(*executor, {{{tokens[0]}, 0, {0}}}), Rows(whole.begin(), whole.begin() + 1));
  EXPECT_EQ(run_step(*executor, {{{tokens.begin() + 1, tokens.end()}, 1, {0}}}),
            Rows(whole.begin() + 1, whole.end()));
}

TEST_F(TrtExecutorTest, CapturesSingleTokensInPlace) {
  if (!kHasNativeKv) GTEST_SKIP() << "skipped: a route of TensorRT 10.15 and later";
  const RandomModel model(full_attention(), DType::kBF16);
  const auto executor = make(model, {});
  const auto tokens = random_tokens(full_attention(), 270, 1);
  const Rows whole = run_whole(*make(model, {}), tokens);
  const int before = fake_cuda::launched_graphs();
  EXPECT_EQ(run_chunked(*executor, tokens, {200, 1}, {0}), whole);
  // Tokens 200 to 255 read one extent, 256 to 269 two; the first of each is launched as it is.
  EXPECT_EQ(fake_cuda::launched_graphs() - before, 55 + 13);
}

TEST_F(TrtExecutorTest, RefusesWhatTheDeviceHasNoRoomFor) {
  const RandomModel model(full_attention(), DType::kF32);
  fake_cuda::set_free_bytes(1000);
  const Error error = error_of([&] { make(model, {}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("no route through TensorRT: native_kv: precision: f32"));
  EXPECT_THAT(error.what(), HasSubstr("dual_profile: memory: "));
}

TEST_F(TrtExecutorTest, CountsTheSpareBlockToTheMemoryForKeysAndValues) {
  const RandomModel model(full_attention(), DType::kF32);
  constexpr uint64_t kBlock = 3 * 2 * (2 * 64) * kContext * 4;  // Layers, keys and values, bytes.
  ExecutorOptions options;
  options.kv_memory_bytes = 2 * kBlock - 1;
  const Error error = error_of([&] { make(model, options); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(),
               "KV memory of 3686399 bytes holds no two blocks of 600 positions, which have "
               "1843200 each: the route standard needs a spare one");
  options.kv_memory_bytes = 2 * kBlock;
  EXPECT_EQ(make(model, options)->limits().num_blocks, 1);
  options.kv_memory_bytes = 3 * kBlock;
  EXPECT_EQ(make(model, options)->limits().num_blocks, 2);
}

TEST_F(TrtExecutorTest, RefusesOptionsOfOtherBackends) {
  const RandomModel model(full_attention(), DType::kF32);
  const std::vector<std::pair<std::function<void(ExecutorOptions&)>, std::string>> cases = {
      {[](ExecutorOptions& o) { o.hidden_state_probe = [](int, std::span<const float>) {}; },
       "shows nothing of what happens inside a step"},
      {[](ExecutorOptions& o) { o.kv_type = KvType::kBF16; }, "keys and values"},
      {[](ExecutorOptions& o) { o.activation_type = ActivationType::kBF16; }, "activations"},
      {[](ExecutorOptions& o) { o.isa = "avx2"; }, "no CPU instruction set"},
      {[](ExecutorOptions& o) { o.num_threads_batch = 2; }, "threads of the CPU"}};
  for (const auto& [change, text] : cases) {
    ExecutorOptions options;
    change(options);
    const Error error = error_of([&] { make(model, options); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST_F(TrtExecutorTest, RefusesALayerThatIsNotThere) {
  const RandomModel model(full_attention(), DType::kBF16);
  ExecutorOptions options;
  options.fp32_layers = {3};
  EXPECT_EQ(error_of([&] { make(model, options); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(TrtExecutorTest, RunsQuantisedWeightsAsNumbers) {
  const RandomModel model(full_attention(), DType::kQ8);
  ExecutorOptions options;
  options.precision = DType::kF32;
  const auto tokens = random_tokens(full_attention(), 20, 1);
  const Rows rows = run_whole(*make(model, options), tokens);
  const auto reference =
      find_backend("reference", model.bundle().manifest()).load(model.bundle(), {});
  const Rows expected = run_whole(*reference, tokens);
  for (size_t t = 0; t < rows.size(); ++t) {
    EXPECT_LE(relative_distance(rows[t], expected[t]), 1e-5) << t;
  }
}

TEST_F(TrtExecutorTest, RunsScaledRotations) {
  DecoderSpec spec = full_attention();
  spec.rope.scaling = YarnScaling{2, 32, 1, 1.0693147180559945, 300, true};
  const RandomModel model(spec, DType::kF32);
  const auto tokens = random_tokens(spec, 30, 1);
  const Rows rows = run_whole(*make(model, {}), tokens);
  const auto reference =
      find_backend("reference", model.bundle().manifest()).load(model.bundle(), {});
  const Rows expected = run_whole(*reference, tokens);
  for (size_t t = 0; t < rows.size(); ++t) {
    EXPECT_LE(relative_distance(rows[t], expected[t]), 1e-5) << t;
  }
}

TEST(NvInferLog, TellsTheLastErrorUntilItIsForgotten) {
  const CapturedLog captured;
  NvInferLog log;
  EXPECT_EQ(log.last_error("none"), "none");
  log.log(NvInferLog::Severity::kERROR, "first");
  log.log(NvInferLog::Severity::kINTERNAL_ERROR, "second");
  log.log(NvInferLog::Severity::kWARNING, "third");
  EXPECT_EQ(log.last_error("none"), "second");
  log.forget_error();
  EXPECT_EQ(log.last_error("none"), "none");
}

}  // namespace
}  // namespace trtmc::tensorrt
