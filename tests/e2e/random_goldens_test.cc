// Every random checkpoint of tests/golden/*-random/, built and run, against Transformers.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

struct GoldenRun {
  std::string name, manifest_case, backend;
};

// E2E cases of generated checkpoints; their goldens lie in the folder of that name.
constexpr const char* kManifestCases[] = {"llama-random", "smollm3-random"};

void PrintTo(const GoldenRun& run, std::ostream* out) { *out << run.name << " on " << run.backend; }

// Every golden on the backend that ships; on reference, which is slow in a debug build, one of each
// kind of position.
std::vector<GoldenRun> golden_runs() {
  std::vector<GoldenRun> runs{{"heads_3_to_1", "smollm3-random", "reference"},
                              {"llama_3_scaling", "llama-random", "reference"},
                              {"schedule_list", "smollm3-random", "reference"},
                              {"sliding_window", "smollm3-random", "reference"},
                              {"untied", "smollm3-random", "reference"},
                              {"yarn_mscale", "smollm3-random", "reference"}};
  for (const char* manifest_case : kManifestCases) {
    const auto folder = std::filesystem::path(TRTMC_SOURCE_DIR) / "tests/golden" / manifest_case;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      runs.push_back({entry.path().stem().stem().string(), manifest_case, "cpu"});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const GoldenRun& a, const GoldenRun& b) {
    return std::pair(a.name, a.backend) < std::pair(b.name, b.backend);
  });
  return runs;
}

class RandomGolden : public testing::TestWithParam<GoldenRun> {};

TEST_P(RandomGolden, IsAsInTransformers) {
  const TemporaryFolder folder;
  const Json golden = random_golden(GetParam().name);
  const Bundle bundle = build_golden_bundle(golden, folder.path());
  const VerifyReport report =
      verify_case(bundle, GetParam().backend, golden, GetParam().manifest_case);
  EXPECT_TRUE(report.passed()) << failures(report);
  EXPECT_EQ(failures(verify_checkpoint(bundle, folder.path() / "checkpoint")), "");
}

TEST_P(RandomGolden, IsAsInTransformersWithKvOfBfloat16) {
  const TemporaryFolder folder;
  const Json golden = random_golden(GetParam().name);
  const Bundle bundle = build_golden_bundle(golden, folder.path());
  const VerifyReport report =
      verify_case(bundle, GetParam().backend, golden, GetParam().manifest_case, KvType::kBF16);
  EXPECT_TRUE(report.passed()) << failures(report);
}

INSTANTIATE_TEST_SUITE_P(All, RandomGolden, testing::ValuesIn(golden_runs()),
                         [](const auto& run) { return run.param.name + "_" + run.param.backend; });

// The two generators, of Python and of C++, agree to the byte: else nothing here would mean a
// thing.
TEST(GoldenCheckpoint, IsTheOneThatTransformersLoaded) {
  for (const char* name : {"untied", "weights_f16", "weights_f32", "odd_sizes"}) {
    const TemporaryFolder folder;
    const Json golden = random_golden(name);
    write_golden_checkpoint(golden, folder.path());
    const MappedFile file(folder.path() / "model.safetensors");
    EXPECT_EQ(to_hex(sha256(file.bytes())), JsonCursor(golden).at("weights").at("sha256").string());
  }
}

}  // namespace
}  // namespace trtmc
