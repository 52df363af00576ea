// What never changes a bit on the cpu backend: chunks, neighbours in the batch, threads, block
// tables, the grain.
#include "tests/conformance/invariance.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_executor.h"
#include "backends/cpu/kernels/dispatch.h"

namespace trtmc {
namespace {

using cpu::Grain;
using cpu::make_cpu_executor;

struct Types {
  std::string name;
  std::string weights;
  KvType kv;
};
using Case = std::tuple<std::string, Types>;

class Bits : public testing::TestWithParam<Case> {
 protected:
  Bits() : model_(spec_, std::get<1>(GetParam()).weights) {
    bits_ = {.make = [this] { return make(); },
             .tokens = random_tokens(spec_, Invariance::kNumTokens, 1),
             .whole = {},
             .spec = spec_};
    bits_.whole = run_whole(*make(), bits_.tokens);
  }

  std::unique_ptr<Executor> make(int num_threads = 2, Grain grain = Grain::kBlock,
                                 int num_threads_batch = 0) const {
    ExecutorOptions options;
    options.num_threads = num_threads;
    options.num_threads_batch = num_threads_batch;
    options.isa = std::get<0>(GetParam());
    options.kv_type = std::get<1>(GetParam()).kv;
    options.kv_memory_bytes = uint64_t{1} << 23;
    return make_cpu_executor(model_.bundle(), options, grain);
  }

  DecoderSpec spec_ = spec_of(model_shapes()[1]);
  RandomModel model_;
  Invariance bits_;
};

TEST_P(Bits, DoNotChangeWithTheChunks) { bits_.expect_same_in_chunks(); }
TEST_P(Bits, DoNotChangeWithTheNeighbours) { bits_.expect_same_beside_neighbours(); }
TEST_P(Bits, DoNotChangeWithTheBlockTable) { bits_.expect_same_with_any_block_table(); }
TEST_P(Bits, DoNotChangeWithACopiedBlock) { bits_.expect_same_with_a_copied_block(); }
TEST_P(Bits, DoNotChangeWithStaleMemory) { bits_.expect_same_with_stale_memory(); }

TEST_P(Bits, DoNotChangeWithTheThreads) {
  EXPECT_EQ(run_whole(*make(1), bits_.tokens), bits_.whole);
  EXPECT_EQ(run_whole(*make(3), bits_.tokens), bits_.whole);
}

// Steps of one token and of several in turn, on other threads each.
TEST_P(Bits, DoNotChangeWithTheThreadsApart) {
  for (const auto& [one, several] : {std::pair(1, 3), std::pair(3, 2), std::pair(2, 1)}) {
    const auto executor = make(one, Grain::kBlock, several);
    const auto table = block_range(*executor, Invariance::kNumTokens);
    EXPECT_EQ(run_chunked(*executor, bits_.tokens, {30, 1, 12, 1, 1, 8, 1}, table), bits_.whole)
        << one << " " << several;
  }
}

TEST_P(Bits, DoNotChangeWithTheGrain) {
  EXPECT_EQ(run_whole(*make(2, Grain::kOperation), bits_.tokens), bits_.whole);
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::KernelTable* table : cpu::available_kernels()) names.emplace_back(table->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Bits,
    testing::Combine(
        testing::ValuesIn(instruction_sets()),
        testing::Values(Types{"f32", "f32", KvType::kF32}, Types{"bf16", "bf16", KvType::kF32},
                        Types{"f16_kv_bf16", "f16", KvType::kBF16},
                        Types{"bf16_kv_q8", "bf16", KvType::kQ8},
                        Types{"bf16_kv_fp8", "bf16", KvType::kFp8}, Types{"q8", "q8", KvType::kF32},
                        Types{"q6", "q6", KvType::kF32}, Types{"q4_q6", "q4_q6", KvType::kF32},
                        Types{"q4", "q4", KvType::kF32})),
    [](const testing::TestParamInfo<Case>& name) {
      return std::get<0>(name.param) + "_" + std::get<1>(name.param).name;
    });

}  // namespace
}  // namespace trtmc
