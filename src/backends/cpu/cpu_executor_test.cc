// On how many threads a step is computed. That its bits do not depend on it: tests/conformance.
#include "backends/cpu/cpu_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "tests/support/random_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc::cpu {
namespace {

namespace fs = std::filesystem;

// Products large enough to be shared among threads.
DecoderSpec spec() {
  DecoderSpec spec{.vocab_size = 1024,
                   .hidden_size = 128,
                   .intermediate_size = 512,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 32,
                   .context_length = 64,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 1e4, .rotary_dim = 32, .scaling = {}},
                   .layers = {}};
  spec.layers.assign(2, {.rope = true, .sliding_window = 0});
  return spec;
}

using Nanoseconds = uint64_t;

class StepThreads : public testing::Test {
 protected:
  StepThreads() {
    write_random_bundle(folder_.path() / "random.trtmc", spec(), "f32", 1);
    bundle_ = std::make_unique<Bundle>(folder_.path() / "random.trtmc");
  }

  std::unique_ptr<Executor> make(int num_threads, int num_threads_batch) {
    ExecutorOptions options;
    options.num_threads = num_threads;
    options.num_threads_batch = num_threads_batch;
    return make_cpu_executor(*bundle_, options);
  }

  static void step(Executor& executor, int num_tokens) {
    std::vector<TokenId> tokens(static_cast<size_t>(num_tokens), 7);
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), 0);
    const int32_t starts[] = {0, num_tokens};
    const int32_t rows[] = {num_tokens - 1};
    const int blocks = (spec().context_length - 1) / executor.limits().block_size + 1;
    std::vector<BlockId> table(static_cast<size_t>(blocks));
    std::iota(table.begin(), table.end(), 0);
    executor.submit({.tokens = tokens,
                     .positions = positions,
                     .sequence_starts = starts,
                     .block_tables = table,
                     .max_blocks = blocks,
                     .logits_rows = rows,
                     .adapters = {}});
    executor.wait();
  }

  // How long each thread of this process but the caller has run so far.
  static std::map<std::string, Nanoseconds> worker_times() {
    std::map<std::string, Nanoseconds> times;
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == std::to_string(::gettid())) continue;
      Nanoseconds time = 0;
      std::ifstream(task.path() / "schedstat") >> time;
      times[task.path().filename()] = time;
    }
    return times;
  }

  // How many of them run while steps of `num_tokens` tokens are computed. A busy system may keep
  // them from it for a while, so there are several attempts to see as many as are `expected`.
  static int workers_of(Executor& executor, int num_tokens, int expected) {
    int ran = -1;
    for (int attempt = 0; ran != expected && attempt < 100; ++attempt) {
      step(executor, num_tokens);  // Whoever is not needed any more finds out.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto before = worker_times();
      for (int i = 0; i < 100; ++i) step(executor, num_tokens);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ran = 0;
      for (const auto& [task, time] : worker_times()) ran += time > before.at(task) ? 1 : 0;
    }
    return ran;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Bundle> bundle_;
};

TEST_F(StepThreads, OfOneTokenAndOfSeveralAreAsAsked) {
  if (!fs::exists("/proc/self/schedstat")) GTEST_SKIP() << "the system counts no time of threads";
  const auto executor = make(2, 4);
  EXPECT_EQ(executor->num_threads(1), 2);
  EXPECT_EQ(executor->num_threads(2), 4);
  EXPECT_EQ(workers_of(*executor, 40, 3), 3);
  EXPECT_EQ(workers_of(*executor, 1, 1), 1);
  EXPECT_EQ(workers_of(*executor, 2, 3), 3);
}

TEST_F(StepThreads, OfOneTokenMayBeMore) {
  if (!fs::exists("/proc/self/schedstat")) GTEST_SKIP() << "the system counts no time of threads";
  const auto executor = make(3, 1);
  EXPECT_EQ(workers_of(*executor, 1, 2), 2);
  EXPECT_EQ(workers_of(*executor, 40, 0), 0);
}

TEST_F(StepThreads, OfSeveralTokensAreThoseOfOneUnlessAsked) {
  const auto executor = make(3, 0);
  EXPECT_EQ(executor->num_threads(1), 3);
  EXPECT_EQ(executor->num_threads(64), 3);
}

TEST_F(StepThreads, AreSaidWhereTheyDiffer) {
  EXPECT_NE(make(1, 0)->description().find(", 1 thread, "), std::string::npos);
  EXPECT_NE(make(2, 2)->description().find(", 2 threads, "), std::string::npos);
  EXPECT_NE(make(1, 4)->description().find(", 1 thread (4 for several tokens), "),
            std::string::npos);
}

}  // namespace
}  // namespace trtmc::cpu
