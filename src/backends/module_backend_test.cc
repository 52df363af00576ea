#include "backends/module_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/support/captured_log.h"
#include "tests/support/random_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kModules = std::filesystem::path(TRTMC_BINARY_DIR) / "bin/test_modules";

std::string reason_of(const std::string& name, const std::filesystem::path& folder = kModules) {
  return ModuleBackend(name, {folder}).unavailable().value_or("none");
}

TEST(Module, ThatIsNotThereSaysWhereItWasLookedFor) {
  EXPECT_EQ(reason_of("absent"),
            "libtrtmc_backend_absent.so is not beside the program nor in a folder of "
            "TRTMC_BACKEND_PATH");
}

TEST(Module, ThatIsNoLibrarySaysSo) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "libtrtmc_backend_text.so") << "not a library";
  EXPECT_THAT(reason_of("text", folder.path()),
              HasSubstr("libtrtmc_backend_text.so can't be loaded: "));
}

TEST(Module, WithoutTheEntryIsNoBackend) {
  EXPECT_THAT(reason_of("no_entry"),
              HasSubstr("is no backend of trtmc: it has no symbol trtmc_backend_v1"));
}

TEST(Module, OfAnotherBuildIsNotUsed) {
  EXPECT_THAT(reason_of("other_build"),
              AllOf(HasSubstr("was built from 9.9.9 of elsewhere, but the program from ")));
}

TEST(Module, ThatCannotStartSaysSo) {
  EXPECT_THAT(reason_of("no_start"), HasSubstr("could not start"));
}

TEST(Module, IsLookedForInOneFolderAfterTheOther) {
  const TemporaryFolder empty;
  const ModuleBackend backend("works", {empty.path(), kModules});
  EXPECT_EQ(backend.unavailable(), std::nullopt);
}

TEST(Module, AnswersForItself) {
  const ModuleBackend backend("works", {kModules});
  EXPECT_EQ(backend.name(), "works");
  EXPECT_EQ(backend.description(), "a library of its own");
  Manifest manifest;
  manifest.quantization = "q3";
  EXPECT_EQ(backend.unsupported(manifest), "no model of q3");
}

TEST(Module, ThrowsErrorsThatAreCaughtOutside) {
  const TemporaryFolder folder;
  const DecoderSpec spec{.vocab_size = 16,
                         .hidden_size = 16,
                         .intermediate_size = 16,
                         .num_heads = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .context_length = 16,
                         .rms_norm_eps = 1e-6F,
                         .tied_embeddings = true,
                         .rope = {.theta = 10000, .rotary_dim = 16, .scaling = {}},
                         .layers = {{.rope = true, .sliding_window = 0}}};
  write_random_bundle(folder.path() / "random.trtmc", spec, "f32", 1);
  const Bundle bundle(folder.path() / "random.trtmc");
  const ModuleBackend backend("works", {kModules});
  const CapturedLog log;
  try {
    backend.load(bundle, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
    EXPECT_STREQ(error.what(), "thrown in a library");
    EXPECT_EQ(error.hint(), "and caught outside of it");
  }
  EXPECT_THAT(log.lines(), testing::ElementsAre("loading is about to fail"));
}

}  // namespace
}  // namespace trtmc
