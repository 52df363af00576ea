// The embedded model and every random checkpoint on the CUDA backend, against Transformers.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/backend_loader.h"
#include "base/file.h"
#include "engine/model_comparison.h"
#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

const std::filesystem::path kSource = TRTMC_SOURCE_DIR;
const std::filesystem::path kUnpacked = std::filesystem::path(TRTMC_BINARY_DIR) / "testdata";

std::optional<std::string> why_absent() {
  for (const Backend* backend : all_backends()) {
    if (backend->name() == "cuda") return backend->unavailable();
  }
  return "there is no such backend";
}

// The name of a golden and its E2E case.
using Case = std::pair<std::string, std::string>;

std::vector<Case> cases() {
  std::vector<Case> all{{"smollm3-tiny", "smollm3-tiny"}};
  for (const char* manifest_case : {"llama-random", "smollm3-random"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(kSource / "tests/golden" / manifest_case)) {
      all.emplace_back(entry.path().stem().stem().string(), manifest_case);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

class CudaGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto reason = why_absent()) {
      GTEST_SKIP() << "skipped: no CUDA device: " << *reason;
    }
    if (GetParam().second == "smollm3-tiny") {
      golden_ = read_goldens(kUnpacked / "tests/golden/smollm3-tiny/logits.json");
      bundle_ = std::make_unique<Bundle>(
          build_checkpoint_bundle(kSource / "models/smollm3-tiny", folder_.path() / "tiny.trtmc"));
    } else {
      golden_ = random_golden(GetParam().first);
      bundle_ = std::make_unique<Bundle>(build_golden_bundle(golden_, folder_.path()));
    }
  }

  std::string failures_with(KvType kv_type, ActivationType activations,
                            std::string_view prefix = "") const {
    return failures(
        verify_case(*bundle_, "cuda", golden_, GetParam().second, kv_type, 1, activations), prefix);
  }

  TemporaryFolder folder_;
  Json golden_;
  std::unique_ptr<Bundle> bundle_;
};

TEST_P(CudaGolden, IsAsInTransformers) {
  EXPECT_EQ(failures_with(KvType::kF32, ActivationType::kF32), "");
}

TEST_P(CudaGolden, IsAsInTransformersWithKvOfBfloat16) {
  EXPECT_EQ(failures_with(KvType::kBF16, ActivationType::kF32), "");
}

// Rounded as Transformers rounds in bfloat16: held to what that run is held to.
TEST_P(CudaGolden, IsAsBfloat16InTransformersWithActivationsOfBfloat16) {
  EXPECT_EQ(failures_with(KvType::kBF16, ActivationType::kBF16, "bfloat16:"), "");
}

// What quantised weights change of the embedded model's predictions. The bound is what they change
// when they are decoded to float32 and run as any other weights (docs/quantization.md, "How good
// they are", by bench/quality.py on the same text), within what its third digit says: activations
// are not rounded further here, unlike on the CPU.
struct Quantized {
  std::string scheme;
  double divergence, tolerance;
};

constexpr size_t kBytes = 16000;
constexpr int kWindow = 512;

std::vector<TokenId> first_tokens(const LoadedModel& model) {
  const std::string text = read_file(kSource / "tests/golden/smollm3-tiny/eval.txt");
  return model.tokenizer().encode(text.substr(0, kBytes));
}

class CudaQuantized : public testing::TestWithParam<Quantized> {};

TEST_P(CudaQuantized, ChangesWhatItsValuesChange) {
  if (const auto reason = why_absent()) GTEST_SKIP() << "skipped: no CUDA device: " << *reason;
  const TemporaryFolder folder;
  const auto load = [&](const std::string& scheme) {
    const auto path = folder.path() / (scheme + ".trtmc");
    build_checkpoint_bundle(kSource / "models/smollm3-tiny", path, scheme);
    return LoadedModel(path, {.backend = "cuda", .executor = {}});
  };
  const LoadedModel original = load("none"), quantized = load(GetParam().scheme);
  const ModelComparison comparison = compare_models(
      quantized.engine_model(), original.engine_model(), first_tokens(original), kWindow);
  EXPECT_NEAR(comparison.mean_divergence(), GetParam().divergence, GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, CudaQuantized,
                         testing::Values(Quantized{"q8", 0.00102, 0.00005},
                                         Quantized{"q4", 0.13235, 0.0005}),
                         [](const auto& of) { return of.param.scheme; });

// Codes are the same but for the few that float rounding moves over a border.
TEST(CudaKeysInFp8, ChangeWhatTheyChangeOnTheCpu) {
  if (const auto reason = why_absent()) GTEST_SKIP() << "skipped: no CUDA device: " << *reason;
  const TemporaryFolder folder;
  const auto path = folder.path() / "tiny.trtmc";
  build_checkpoint_bundle(kSource / "models/smollm3-tiny", path);
  const auto divergence = [&](const std::string& backend) {
    LoadOptions options{.backend = backend, .executor = {}};
    const LoadedModel original(path, options);
    options.executor.kv_type = KvType::kFp8;
    const LoadedModel rounded(path, options);
    return compare_models(rounded.engine_model(), original.engine_model(), first_tokens(original),
                          kWindow)
        .mean_divergence();
  };
  const double on_cpu = divergence("cpu");
  EXPECT_NEAR(divergence("cuda"), on_cpu, 0.02 * on_cpu);
}

INSTANTIATE_TEST_SUITE_P(All, CudaGolden, testing::ValuesIn(cases()), [](const auto& of) {
  std::string name = of.param.first;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace trtmc
