// What never changes a bit on the cpu backend: chunks, neighbours in the batch, threads, block
// tables, the grain.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_executor.h"
#include "backends/cpu/kernels/dispatch.h"
#include "tests/conformance/conformance.h"

namespace trtmc {
namespace {

using cpu::Grain;
using cpu::make_cpu_executor;

constexpr int kNumTokens = 75;

struct Types {
  std::string name;
  DType weights;
  KvType kv;
};
using Case = std::tuple<std::string, Types>;

class Bits : public testing::TestWithParam<Case> {
 protected:
  Bits()
      : model_(spec_, std::get<1>(GetParam()).weights),
        tokens_(random_tokens(spec_, kNumTokens, 1)) {
    const auto executor = make();
    whole_ = run_whole(*executor, tokens_);
  }

  std::unique_ptr<Executor> make(int num_threads = 2, Grain grain = Grain::kBlock) const {
    ExecutorOptions options;
    options.num_threads = num_threads;
    options.isa = std::get<0>(GetParam());
    options.kv_type = std::get<1>(GetParam()).kv;
    options.kv_memory_bytes = uint64_t{1} << 23;
    return make_cpu_executor(model_.bundle(), options, grain);
  }

  DecoderSpec spec_ = spec_of(model_shapes()[1]);
  RandomModel model_;
  std::vector<TokenId> tokens_;
  Rows whole_;
};

TEST_P(Bits, DoNotChangeWithTheChunks) {
  const std::vector<std::vector<int>> kChunkings = {{1}, {2}, {7}, {32}, {31, 2, 33, 1}, {64, 3}};
  for (const auto& chunks : kChunkings) {
    const auto executor = make();
    EXPECT_EQ(run_chunked(*executor, tokens_, chunks, block_range(*executor, kNumTokens)), whole_)
        << testing::PrintToString(chunks);
  }
}

TEST_P(Bits, DoNotChangeWithTheNeighbours) {
  const auto executor = make();
  const auto table = block_range(*executor, kNumTokens);
  const auto next = static_cast<BlockId>(table.size());
  const auto other = random_tokens(spec_, 40, 2);
  const auto third = random_tokens(spec_, 5, 3);
  const std::vector<TokenId> head(tokens_.begin(), tokens_.begin() + 50);
  // Between two others; then one token at a time beside another that goes on.
  Rows rows = run_step(*executor, {{other, 0, block_range(*executor, 40, next)},
                                   {head, 0, table},
                                   {third, 0, block_range(*executor, 5, next + 2)}});
  rows = {rows.begin() + 40, rows.begin() + 90};
  for (int t = 50; t < kNumTokens; ++t) {
    const Rows step = run_step(*executor, {{{tokens_[static_cast<size_t>(t)]}, t, table},
                                           {{1}, t - 45, block_range(*executor, 40, next + 2)}});
    rows.push_back(step[0]);
  }
  EXPECT_EQ(rows, whole_);
}

TEST_P(Bits, DoNotChangeWithTheThreads) {
  EXPECT_EQ(run_whole(*make(1), tokens_), whole_);
  EXPECT_EQ(run_whole(*make(3), tokens_), whole_);
}

TEST_P(Bits, DoNotChangeWithTheBlockTable) {
  const auto executor = make();
  EXPECT_EQ(run_chunked(*executor, tokens_, {kNumTokens}, {5, 0, 3}), whole_);
}

TEST_P(Bits, DoNotChangeWithACopiedBlock) {
  const auto executor = make();
  const std::vector<TokenId> head(tokens_.begin(), tokens_.begin() + 70);
  const std::vector<TokenId> tail(tokens_.begin() + 70, tokens_.end());
  run_step(*executor, {{head, 0, {0, 1, 2}}});
  executor->copy_block(2, 4);
  run_step(*executor, {{{1, 2, 3}, 70, {0, 1, 2}}});  // Goes its own way in the original.
  const Rows rows = run_step(*executor, {{tail, 70, {0, 1, 4}}});
  EXPECT_EQ(rows, Rows(whole_.begin() + 70, whole_.end()));
}

TEST_P(Bits, DoNotChangeWithTheGrain) {
  EXPECT_EQ(run_whole(*make(2, Grain::kOperation), tokens_), whole_);
}

TEST_P(Bits, DoNotChangeWithStaleMemory) {
  const auto executor = make();
  run_whole(*executor, random_tokens(spec_, 90, 9));
  EXPECT_EQ(run_whole(*executor, tokens_), whole_);
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::KernelTable* table : cpu::available_kernels()) names.emplace_back(table->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Bits,
                         testing::Combine(testing::ValuesIn(instruction_sets()),
                                          testing::Values(Types{"f32", DType::kF32, KvType::kF32},
                                                          Types{"bf16", DType::kBF16, KvType::kF32},
                                                          Types{"f16_kv_bf16", DType::kF16,
                                                                KvType::kBF16})),
                         [](const testing::TestParamInfo<Case>& name) {
                           return std::get<0>(name.param) + "_" + std::get<1>(name.param).name;
                         });

}  // namespace
}  // namespace trtmc
