#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  Verify() : golden_(random_golden("odd_sizes")), bundle_(build_golden_bundle(golden_, path())) {}

  const std::filesystem::path& path() const { return folder_.path(); }

  TemporaryFolder folder_;
  Json golden_;
  Bundle bundle_;
};

TEST(VerifyReport, WithoutChecksHasNotPassed) { EXPECT_FALSE(VerifyReport{}.passed()); }

TEST(VerifyReport, AFigureThatIsNoNumberHasNotPassed) {
  EXPECT_FALSE((Check{"", NAN, 1, true, ""}.passed()));
  EXPECT_FALSE((Check{"", NAN, 1, false, ""}.passed()));
}

TEST_F(Verify, HashesFindTheSectionThatWasDamaged) {
  EXPECT_TRUE(verify_hashes(bundle_).passed());
  const auto damaged = path() / "damaged.trtmc";
  std::filesystem::copy_file(bundle_.path(), damaged);
  const Section& section = *bundle_.find("layers.1.up_proj");
  std::fstream file(damaged, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(section.offset + 5));
  file.put('\x55');
  file.close();
  EXPECT_THAT(failures(verify_hashes(Bundle(damaged))), HasSubstr("layers.1.up_proj"));
}

TEST_F(Verify, HashesFindAByteBetweenTwoSections) {
  const auto damaged = path() / "damaged.trtmc";
  std::filesystem::copy_file(bundle_.path(), damaged);
  const Section& norm = *bundle_.find("layers.1.mlp_norm");
  ASSERT_NE(norm.bytes % 4096, 0u);
  std::fstream file(damaged, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(norm.offset + norm.bytes));
  file.put('\1');
  file.close();
  EXPECT_THAT(failures(verify_hashes(Bundle(damaged))), HasSubstr("layers.1.mlp_norm"));
}

TEST_F(Verify, CheckpointIsTheBundles) {
  EXPECT_EQ(failures(verify_checkpoint(bundle_, path() / "checkpoint")), "");
}

TEST_F(Verify, CheckpointWithOneOtherBitIsAnother) {
  const auto flip_sign = [](OwnedTensor& tensor) {
    if (tensor.name == "model.layers.2.mlp.down_proj.weight") tensor.bytes[101] ^= std::byte{0x80};
  };
  write_golden_checkpoint(golden_, path() / "other", {.config = {}, .tensor = flip_sign});
  const std::string found = failures(verify_checkpoint(bundle_, path() / "other"));
  EXPECT_THAT(found, HasSubstr("layers.2.down_proj"));
  EXPECT_THAT(found, HasSubstr("model.safetensors"));
}

TEST_F(Verify, CheckpointThatLacksATensorIsNamed) {
  const auto rename = [](OwnedTensor& tensor) {
    if (tensor.name == "model.norm.weight") tensor.name = "model.norm.weights";
  };
  write_golden_checkpoint(golden_, path() / "other", {.config = {}, .tensor = rename});
  try {
    verify_checkpoint(bundle_, path() / "other");
    FAIL() << "a checkpoint without a tensor was compared";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.norm.weight"));
  }
}

TEST_F(Verify, BackendsAgreeWithReferenceAndDoNotDependOnTheBatch) {
  for (const char* backend : {"cpu", "reference"}) {
    EXPECT_EQ(failures(verify_backend(bundle_, backend, {})), "") << backend;
  }
}

TEST_F(Verify, AContextShorterThanTheSequencesIsRefused) {
  const auto with_context = [&](int tokens) {
    const auto shorten = [=](Json& config) { config.set("max_position_embeddings", tokens); };
    return build_golden_bundle(golden_, path() / std::to_string(tokens),
                               {.config = shorten, .tensor = {}});
  };
  EXPECT_THROW(verify_backend(with_context(16), "cpu", {}), Error);
  // The golden has 48 tokens and 12 more, for which the two KV blocks of this context have room.
  EXPECT_THROW(verify_case(with_context(59), "cpu", golden_, "smollm3-random"), Error);
}

TEST_F(Verify, GoldensOfAnotherModelAreRefused) {
  EXPECT_THROW(verify_case(bundle_, "reference", random_golden("untied"), "smollm3-random"), Error);
}

TEST_F(Verify, GoldensWithoutThresholdsAreRefused) {
  EXPECT_THROW(verify_goldens(bundle_, "reference", {}, golden_), Error);
}

TEST_F(Verify, ThresholdsAreThoseOfTheFile) {
  Json strict = golden_;
  strict.set("thresholds", Json::parse(R"({"float32": {"logits_relative_l2": 1e-30,
    "logits_cosine": 0.9999, "logsumexp_difference": 1e-3, "hidden_relative_l2": 1e-4,
    "greedy_mismatches": 0, "perplexity_relative": 1e-4}, "bfloat16": {"cosine_p5": 0.99,
    "relative_l2_p95": 0.05, "float32_error_share": 1, "argmax_agreement": 0.98,
    "argmax_margin": 0.1, "continuation_edit_distance": 0},
    "bfloat16_kv": {"noise_factor": 2, "relative_l2": 1e-4}})"));
  const VerifyReport report = verify_goldens(bundle_, "cpu", {}, strict);
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(failures(report), HasSubstr("at most 1e-30"));
}

TEST_F(Verify, KvOfBfloat16IsHeldToTheOraclesOfBfloat16) {
  const VerifyReport report = verify_case(bundle_, "cpu", golden_, "smollm3-random", KvType::kBF16);
  EXPECT_TRUE(report.passed()) << failures(report);
  int of_kv = 0;
  for (const Check& check : report.checks) {
    EXPECT_THAT(check.name, HasSubstr("bfloat16"));
    if (check.name.starts_with("bfloat16 KV:")) ++of_kv;
  }
  EXPECT_EQ(of_kv, 1);
}

}  // namespace
}  // namespace trtmc
