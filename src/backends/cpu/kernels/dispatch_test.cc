#include "backends/cpu/kernels/dispatch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "backends/builtin_backends.h"
#include "base/error.h"

namespace trtmc::cpu {
namespace {

TEST(Dispatch, AlwaysHasTheGenericKernelsLast) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_STREQ(available_kernels().back()->name, "generic");
}

TEST(Dispatch, ChoosesByName) {
  for (const KernelTable* table : available_kernels()) {
    EXPECT_EQ(&choose_kernels(table->name), table);
  }
}

// The environment is a setting of the command line, which refuses a wrong one. Were it read here
// too, a wrong one would make the backend unavailable, and another would run in its place.
TEST(Dispatch, ChoosesTheBestWithoutANameWhateverTheEnvironmentSays) {
  setenv("TRTMC_CPU_ISA", "mmx", 1);
  EXPECT_EQ(&choose_kernels(""), available_kernels().front());
  EXPECT_EQ(cpu_backend().unavailable(), std::nullopt);
  unsetenv("TRTMC_CPU_ISA");
}

TEST(Dispatch, RefusesAnUnknownNameWithThoseItKnows) {
  try {
    choose_kernels("mmx");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("\"mmx\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("generic"), std::string::npos);
  }
}

// No processor has both x86's and ARM's.
TEST(Dispatch, RefusesAnInstructionSetThatThisMachineLacks) {
  const std::string best = available_kernels().front()->name;
  const std::string other = best.starts_with("neon") ? "avx2" : "neon";
  try {
    choose_kernels(other);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("can't run " + other + ", only " + best),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace trtmc::cpu
