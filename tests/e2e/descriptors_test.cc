// The descriptors that tools/model_ci validates say what the program's own table of families says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "families/model_family.h"

namespace trtmc {
namespace {

TEST(Descriptors, AreTheProgramsFamilies) {
  const std::filesystem::path folder = std::filesystem::path(TRTMC_SOURCE_DIR) / "src/families";
  for (const ModelFamily* family : all_families()) {
    const Json json = Json::parse(read_file(folder / family->name / "descriptor.json"));
    const JsonCursor descriptor(json);
    EXPECT_EQ(descriptor.at("family").string(), family->name);
    EXPECT_EQ(descriptor.at("strategy").string(), family->strategy);
    std::vector<std::string> architectures;
    for (const JsonCursor& name : descriptor.at("architectures").elements()) {
      architectures.push_back(name.string());
    }
    EXPECT_THAT(architectures, testing::ElementsAreArray(family->architectures.begin(),
                                                         family->architectures.end()));
  }
}

}  // namespace
}  // namespace trtmc
