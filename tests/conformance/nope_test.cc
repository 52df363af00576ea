// A layer without rotation does not know where its tokens stand, one with rotation does.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/backend_loader.h"
#include "tests/conformance/conformance.h"

namespace trtmc {
namespace {

// The hidden state after the only layer of a model, of one token that sees a whole block of others
// and itself. The others are always stored as positions 0, 1, …; the token stands right behind them
// or, the block being listed as the third, two blocks further away.
class PositionProbe {
 public:
  PositionProbe(std::string_view backend, bool rope) : model_(spec(rope), DType::kF32) {
    ExecutorOptions options;
    options.hidden_state_probe = [this](int layer, std::span<const float> hidden) {
      if (layer == 0) hidden_.assign(hidden.begin(), hidden.end());
    };
    executor_ = find_backend(backend, model_.bundle().manifest()).load(model_.bundle(), options);
    block_size_ = executor_->limits().block_size;
    run_step(*executor_, {{random_tokens(spec(rope), block_size_, 1), 0, {0}}});
  }

  std::vector<float> near() { return probe(block_size_, {0, 1}); }
  std::vector<float> far() { return probe(3 * block_size_, {2, 3, 0, 1}); }

 private:
  // The window hides all but the block before the token.
  static DecoderSpec spec(bool rope) {
    DecoderSpec spec = spec_of(model_shapes()[1]);
    spec.layers = {{.rope = rope, .sliding_window = kWindow}};
    return spec;
  }

  std::vector<float> probe(int position, const std::vector<BlockId>& table) {
    run_step(*executor_, {{{42}, position, table}});
    return hidden_;
  }

  // No larger than the smallest block there is and the token itself.
  static constexpr int kWindow = 17;

  RandomModel model_;
  std::unique_ptr<Executor> executor_;
  int block_size_ = 0;
  std::vector<float> hidden_;
};

class Layer : public testing::TestWithParam<std::string> {};

bool is_absent(std::string_view backend) {
  return std::ranges::any_of(all_backends(), [&](const Backend* there) {
    return there->name() == backend && there->unavailable();
  });
}

TEST_P(Layer, WithoutRopeIsBitEqualAtAnyDistance) {
  if (is_absent(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  PositionProbe probe(GetParam(), false);
  const std::vector<float> near = probe.near();
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near, probe.far());
}

TEST_P(Layer, WithRopeMovesWithTheDistance) {
  if (is_absent(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  PositionProbe probe(GetParam(), true);
  const std::vector<float> near = probe.near();
  ASSERT_FALSE(near.empty());
  EXPECT_GT(relative_distance(near, probe.far()), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Layer, testing::Values("cpu", "cuda", "reference"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace trtmc
