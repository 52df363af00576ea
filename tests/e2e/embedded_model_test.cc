// The embedded model against the reference numbers that came with it, and wrong variants of it: a
// trained model is what the gates are for.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

const std::filesystem::path kSource = TRTMC_SOURCE_DIR;
const std::filesystem::path kUnpacked = std::filesystem::path(TRTMC_BINARY_DIR) / "testdata";
const std::filesystem::path kTiny = kSource / "models/smollm3-tiny";

// Some of the golden's prompts; all of it is for `model_ci prove smollm3-tiny`.
Json golden_of(const std::vector<std::string>& names) {
  Json golden = read_goldens(kUnpacked / "tests/golden/smollm3-tiny/logits.json");
  Json::Array cases;
  for (const JsonCursor& cursor : JsonCursor(golden).at("cases").elements()) {
    if (std::count(names.begin(), names.end(), cursor.at("name").string()) > 0) {
      cases.push_back(cursor.json());
    }
  }
  golden.set("cases", std::move(cases));
  std::erase_if(*golden.object(), [](const Json::Member& m) { return m.first == "perplexity"; });
  return golden;
}

const std::vector<std::string> kPrompts{"2_raw", "3_raw", "5_raw", "6_chat", "8_chat"};

// The embedded checkpoint with another config.json.
Bundle build_changed(const std::filesystem::path& folder, std::string_view key, Json value) {
  const auto checkpoint = folder / "checkpoint";
  std::filesystem::create_directory(checkpoint);
  for (const auto& entry : std::filesystem::directory_iterator(kTiny)) {
    std::filesystem::create_symlink(entry.path(), checkpoint / entry.path().filename());
  }
  std::filesystem::remove(checkpoint / "config.json");
  Json config = Json::parse(read_file(kTiny / "config.json"));
  config.set(key, std::move(value));
  write_text(checkpoint / "config.json", config.dump(2));
  return build_checkpoint_bundle(checkpoint, folder / "changed.trtmc");
}

TEST(EmbeddedModel, IsAsInTransformers) {
  const TemporaryFolder folder;
  const Bundle bundle = build_checkpoint_bundle(kTiny, folder.path() / "tiny.trtmc");
  const VerifyReport report =
      verify_case(bundle, "cpu", golden_of(kPrompts), "smollm3-tiny", KvType::kF32, 2);
  EXPECT_TRUE(report.passed()) << failures(report);
  const VerifyReport with_bfloat16_kv =
      verify_case(bundle, "cpu", golden_of(kPrompts), "smollm3-tiny", KvType::kBF16, 2);
  EXPECT_TRUE(with_bfloat16_kv.passed()) << failures(with_bfloat16_kv);
  EXPECT_EQ(failures(verify_checkpoint(bundle, kTiny)), "");
  EXPECT_TRUE(verify_hashes(bundle).passed());
}

TEST(EmbeddedModel, StaysSoOver2000Positions) {
  const TemporaryFolder folder;
  const Bundle bundle = build_checkpoint_bundle(kTiny, folder.path() / "tiny.trtmc");
  const Json golden = golden_of({"long", "2_raw", "3_raw", "5_raw"});
  const VerifyReport report = verify_case(bundle, "cpu", golden, "smollm3-tiny", KvType::kF32, 2);
  EXPECT_TRUE(report.passed()) << failures(report);
}

struct Change {
  const char* name;
  const char* key;
  Json value;
  bool bfloat16_sees;
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

class WrongEmbeddedModel : public testing::TestWithParam<Change> {};

TEST_P(WrongEmbeddedModel, FailsTheGates) {
  const TemporaryFolder folder;
  const Bundle bundle = build_changed(folder.path(), GetParam().key, GetParam().value);
  const VerifyReport report =
      verify_case(bundle, "cpu", golden_of(kPrompts), "smollm3-tiny", KvType::kF32, 2);
  EXPECT_NE(failures(report, "float32:"), "");
  EXPECT_EQ(failures(report, "bfloat16:") != "", GetParam().bfloat16_sees)
      << failures(report, "bfloat16:");
  const VerifyReport with_bfloat16_kv =
      verify_case(bundle, "cpu", golden_of(kPrompts), "smollm3-tiny", KvType::kBF16, 2);
  EXPECT_NE(failures(with_bfloat16_kv, "bfloat16 KV:"), "");
}

INSTANTIATE_TEST_SUITE_P(All, WrongEmbeddedModel,
                         testing::Values(Change{"rope_everywhere", "no_rope_layers",
                                                Json::Array{1, 1, 1, 1, 1, 1, 1, 1}, true},
                                         Change{"rope_flags_inverted", "no_rope_layers",
                                                Json::Array{0, 0, 0, 1, 0, 0, 0, 1}, true},
                                         Change{"theta_of_llama_2", "rope_theta", 10000.0, true},
                                         Change{"eps_times_ten", "rms_norm_eps", 1e-5, false},
                                         Change{"eps_of_another_kind", "rms_norm_eps", 1e-2, true}),
                         [](const auto& change) { return change.param.name; });

}  // namespace
}  // namespace trtmc
