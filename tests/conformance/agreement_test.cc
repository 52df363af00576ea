// Every backend against the reference, whole steps.
#include <gtest/gtest.h>

#include "backends/backend_loader.h"
#include "backends/cpu/kernels/dispatch.h"
#include "tests/conformance/conformance.h"

namespace trtmc {
namespace {

// Float sums of a few hundred terms through three layers: each is off by a few units of 2^-24 of
// its operands, which random signs let grow like the root of their number.
constexpr double kTolerance = 1e-5;

std::unique_ptr<Executor> load(std::string_view backend, const Bundle& bundle,
                               const ExecutorOptions& options) {
  return find_backend(backend, bundle.manifest()).load(bundle, options);
}

// A backend, and of the cpu's an instruction set.
struct Variant {
  std::string backend;
  std::string isa;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Backend* backend : all_backends()) {
    // The cuda backend has a program of its own, cuda_test.cc; so has tensorrt, tests/tensorrt.
    if (backend->name() == "reference" || backend->name() == "cuda") continue;
    if (backend->name() == "tensorrt") continue;
    if (backend->name() != "cpu") {
      all.push_back({std::string(backend->name()), ""});
      continue;
    }
    for (const cpu::KernelTable* kernels : cpu::available_kernels()) {
      all.push_back({"cpu", kernels->name});
    }
  }
  return all;
}

using Case = std::tuple<DType, ModelShape>;

// The reference multiplies decoded weights with floats, the cpu backend with activations of 8 bits:
// a block's largest is 127 steps, and rounding to a step has the standard deviation 1 / sqrt(12) of
// it. The largest of 32 values is at most sqrt(32) times their root mean square, so each product's
// inputs are off by at most sqrt(32) / 127 / sqrt(12) = 1.3 % of their size, and so is what it
// gives, since weights are random. Thirteen products lie on the way through three layers and the
// head, each off independently: sqrt(13) * 1.3 %.
constexpr double kQuantizedTolerance = 0.047;

class Backends : public testing::TestWithParam<Case> {};

TEST_P(Backends, AgreeWithTheReference) {
  const auto& [dtype, shape] = GetParam();
  const double tolerance = is_quantized(dtype) ? kQuantizedTolerance : kTolerance;
  const DecoderSpec spec = spec_of(shape);
  const RandomModel model(spec, dtype);
  // Beyond two blocks, and not at the border of one.
  const auto tokens = random_tokens(spec, 75, 1);
  const Rows expected = run_whole(*load("reference", model.bundle(), {}), tokens);
  ASSERT_EQ(expected.size(), tokens.size());
  for (const Variant& variant : variants()) {
    ExecutorOptions options;
    options.num_threads = 2;
    options.isa = variant.isa;
    const auto executor = load(variant.backend, model.bundle(), options);
    const Rows got = run_chunked(*executor, tokens, {40, 1}, block_range(*executor, 75));
    for (size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_LE(relative_distance(got[t], expected[t]), tolerance)
          << variant.backend << " " << variant.isa << " token " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Backends,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16,
                                                          DType::kQ8, DType::kQ6, DType::kQ4),
                                          testing::ValuesIn(model_shapes())),
                         [](const testing::TestParamInfo<Case>& name) {
                           return std::string(dtype_name(std::get<0>(name.param))) + "_" +
                                  std::get<1>(name.param).name;
                         });

// A cache that rounds: how much a key that float rounding moves over the border between two values
// may move the logits, and how much all of the rounding does at most.
struct RoundingCache {
  KvType type;
  double border;
  double most;
};
class KvCache : public testing::TestWithParam<RoundingCache> {};

TEST_P(KvCache, AgreesWithTheReference) {
  const DecoderSpec spec = spec_of(model_shapes()[1]);
  const RandomModel model(spec, DType::kF32);
  ExecutorOptions options;
  options.kv_type = GetParam().type;
  const auto tokens = random_tokens(spec, 75, 1);
  const auto reference = load("reference", model.bundle(), options);
  const Rows expected = run_whole(*reference, tokens);
  const Rows exact = run_whole(*load("reference", model.bundle(), {}), tokens);
  for (const Variant& variant : variants()) {
    ExecutorOptions variant_options = options;
    variant_options.isa = variant.isa;
    const auto executor = load(variant.backend, model.bundle(), variant_options);
    const Rows got = run_whole(*executor, tokens);
    double rounding = 0;
    for (size_t t = 0; t < got.size(); ++t) {
      EXPECT_LE(relative_distance(got[t], expected[t]), GetParam().border)
          << variant.backend << " " << variant.isa << " token " << t;
      rounding = std::max(rounding, relative_distance(got[t], exact[t]));
    }
    // Rounding shows.
    EXPECT_GT(rounding, 1e-3);
    EXPECT_LT(rounding, GetParam().most);
  }
}

// Of bf16 such a key is off by 2^-8 of itself, of bytes by 1/127 of the head's largest, of fp8 by
// 2^-3 of itself; few of the 75 x 128 are, the fewer the wider apart the borders: so between bf16
// and fp8 the square of what they do grows 32 times. There each component is off by 2^-4 at most,
// so evenly spread by 2^-4 / sqrt(3) or 3.6 %, which keys and values of three layers do six times:
// sqrt(6) * 3.6 % = 8.8 %.
INSTANTIATE_TEST_SUITE_P(Conformance, KvCache,
                         testing::Values(RoundingCache{KvType::kBF16, 1e-3, 3e-2},
                                         RoundingCache{KvType::kQ8, 3e-3, 6e-2},
                                         RoundingCache{KvType::kFp8, 6e-3, 9e-2}),
                         [](const testing::TestParamInfo<RoundingCache>& name) {
                           return std::string(kv_type_name(name.param.type));
                         });

}  // namespace
}  // namespace trtmc
