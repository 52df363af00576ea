#include "backends/tensorrt/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"

namespace trtmc::tensorrt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlanKey some_key() {
  return {.model = {},
          .tensorrt = "10.14.1",
          .gpu = "NVIDIA H200, compute capability 9.0",
          .route = DecoderRoute::kStandard,
          .precision = DType::kBF16,
          .fp32_layers = {},
          .shape = engines_of(DecoderRoute::kStandard, 4096, 512)[0]};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(PlanName, IsTheSameForTheSameKey) { EXPECT_EQ(plan_name(some_key()), plan_name(some_key())); }

TEST(PlanName, DiffersWithEachThingThatAnEngineDependsOn) {
  const std::vector<std::function<void(PlanKey&)>> changes = {
      [](PlanKey&) {},
      [](PlanKey& key) { key.model[31] = std::byte{1}; },
      [](PlanKey& key) { key.tensorrt = "10.14.2"; },
      [](PlanKey& key) { key.gpu = "NVIDIA H100, compute capability 9.0"; },
      [](PlanKey& key) { key.route = DecoderRoute::kDualProfile; },
      [](PlanKey& key) { key.precision = DType::kF16; },
      [](PlanKey& key) {
        key.fp32_layers = {1, 2};
      },
      [](PlanKey& key) { key.fp32_layers = {12}; },
      [](PlanKey& key) { key.shape = engines_of(DecoderRoute::kStandard, 4097, 512)[0]; },
      [](PlanKey& key) { key.shape = engines_of(DecoderRoute::kStandard, 4096, 256)[0]; },
      [](PlanKey& key) { key.shape = engines_of(DecoderRoute::kStandard, 4096, 512)[1]; },
      [](PlanKey& key) { key.shape.fixed["cache_capacity"] = 4096; },
  };
  std::set<std::string> names;
  for (const auto& change : changes) {
    PlanKey key = some_key();
    change(key);
    names.insert(plan_name(key));
  }
  EXPECT_EQ(names.size(), changes.size());
}

TEST(PlanFolder, IsBelowTheCache) {
  EXPECT_EQ(plan_folder(environment_of({{"HOME", "/h"}})), "/h/.cache/trtmc/tensorrt");
  EXPECT_EQ(plan_folder(environment_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}})),
            "/c/trtmc/tensorrt");
  EXPECT_EQ(plan_folder(environment_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "c"}})),
            "/h/.cache/trtmc/tensorrt");  // The specification: a relative path is to be ignored.
  EXPECT_EQ(plan_folder(environment_of({})), std::nullopt);
}

TEST(PlanCache, GivesBackWhatItKept) {
  const TemporaryFolder folder;
  const PlanCache cache(folder.path() / "deep" / "down");
  EXPECT_EQ(cache.find("a.plan"), std::nullopt);
  cache.keep("a.plan", bytes_of("an engine"));
  cache.keep("a.plan", bytes_of("another engine"));
  EXPECT_EQ(cache.find("a.plan"), bytes_of("another engine"));
  EXPECT_EQ(cache.find("b.plan"), std::nullopt);
}

TEST(PlanCache, DoesNotUseWhatIsDamaged) {
  const TemporaryFolder folder;
  const PlanCache cache(folder.path());
  cache.keep("a.plan", bytes_of("an engine"));
  {
    std::fstream file(folder.path() / "a.plan", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  const CapturedLog log;
  EXPECT_EQ(cache.find("a.plan"), std::nullopt);
  std::ofstream(folder.path() / "short.plan") << "short";
  EXPECT_EQ(cache.find("short.plan"), std::nullopt);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("an engine that was built before is not used: " +
                                                 (folder.path() / "a.plan").string() + ": damaged"),
                                       HasSubstr("short.plan: damaged")));
}

TEST(PlanCache, MakesAFolderForTheUserAlone) {
  const TemporaryFolder folder;
  const mode_t mask = umask(0);
  PlanCache(folder.path() / "deep" / "down").keep("a.plan", bytes_of("an engine"));
  umask(mask);
  for (const char* made : {"deep", "deep/down"}) {
    EXPECT_EQ(std::filesystem::status(folder.path() / made).permissions(),
              std::filesystem::perms::owner_all);
  }
}

TEST(PlanCache, TakesNothingFromAFolderThatOthersMayWrite) {
  using std::filesystem::perms;
  for (const perms others : {perms::group_write, perms::others_write}) {
    const TemporaryFolder folder;
    const PlanCache cache(folder.path());
    cache.keep("a.plan", bytes_of("an engine"));
    EXPECT_EQ(cache.find("a.plan"), bytes_of("an engine"));
    std::filesystem::permissions(folder.path(), others, std::filesystem::perm_options::add);
    const CapturedLog log;
    EXPECT_EQ(cache.find("a.plan"), std::nullopt);
    cache.keep("b.plan", bytes_of("an engine"));
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "b.plan"));
    const std::string reason =
        folder.path().string() + ": others may write into the folder, and engines are code";
    EXPECT_THAT(log.lines(),
                ElementsAre(HasSubstr("an engine that was built before is not used: " + reason),
                            HasSubstr("an engine is not kept for the next time: " + reason)));
  }
}

TEST(PlanCache, WithoutAFolderKeepsNothing) {
  const PlanCache cache(std::nullopt);
  cache.keep("a.plan", bytes_of("an engine"));
  EXPECT_EQ(cache.find("a.plan"), std::nullopt);
}

TEST(PlanCache, ThatCanNotWriteIsNoFailure) {
  const CapturedLog log;
  const PlanCache cache("/proc/no-such-folder");
  cache.keep("a.plan", bytes_of("an engine"));
  EXPECT_EQ(cache.find("a.plan"), std::nullopt);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("an engine is not kept for the next time: "
                                                 "/proc/no-such-folder: can't make the folder")));
}

}  // namespace
}  // namespace trtmc::tensorrt
