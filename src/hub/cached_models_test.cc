#include "hub/cached_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/cache_lock.h"
#include "hub/cache_paths.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

const std::string kOld(40, 'a'), kNew(40, 'b');

// Two revisions that share one blob, as huggingface_hub leaves them.
class CachedModelsTest : public testing::Test {
 protected:
  CachedModelsTest() {
    put(kOld, "config.json", "c1", 10);
    put(kOld, "model.safetensors", "shared", 1000);
    put(kNew, "config.json", "c2", 20);
    put(kNew, "model.safetensors", "shared", 1000);
    fs::create_directories(model() / "refs" / "refs" / "pr");
    write_text(model() / "refs" / "main", kNew);
    write_text(model() / "refs" / "refs" / "pr" / "1", kOld);
    write_text(model() / "blobs" / "x.trtmc.incomplete", "12345");
  }
  void put(const std::string& commit, const std::string& name, const std::string& blob,
           size_t bytes) {
    fs::create_directories(model() / "blobs");
    fs::create_directories(model() / "snapshots" / commit);
    write_text(model() / "blobs" / blob, std::string(bytes, 'x'));
    fs::create_symlink(fs::path("../../blobs") / blob, model() / "snapshots" / commit / name);
  }
  fs::path model() const { return cache_.path() / "models--owner--name"; }
  fs::path locks() const { return cache_.path() / ".locks" / "models--owner--name"; }
  CachedModel read() const { return cached_models(cache_.path()).at(0); }

  TemporaryFolder cache_;
};

TEST_F(CachedModelsTest, AreListedWithRevisionsRefsAndSizes) {
  const CachedModel found = read();
  EXPECT_EQ(found.id.str(), "owner/name");
  EXPECT_EQ(found.bytes, 1030u);
  EXPECT_EQ(found.partial_bytes, 5u);
  ASSERT_EQ(found.revisions.size(), 2u);
  EXPECT_EQ(found.revisions[0].commit, kOld);
  EXPECT_THAT(found.revisions[0].refs, testing::ElementsAre("refs/pr/1"));
  EXPECT_EQ(found.revisions[0].bytes, 1010u);
  EXPECT_THAT(found.revisions[1].refs, testing::ElementsAre("main"));
}

TEST_F(CachedModelsTest, WhatDoesNotBelongThereIsPassedOver) {
  fs::create_directories(cache_.path() / "datasets--a--b" / "snapshots" / kOld);
  fs::create_directories(cache_.path() / "models--..--x");
  fs::create_directories(model() / "snapshots" / "not-a-commit");
  write_text(cache_.path() / "version.txt", "1");
  EXPECT_EQ(cached_models(cache_.path()).size(), 1u);
  EXPECT_EQ(read().revisions.size(), 2u);
  EXPECT_TRUE(cached_models(cache_.path() / "absent").empty());
}

TEST_F(CachedModelsTest, ALinkThatLeadsNowhereIsSaid) {
  fs::remove(model() / "blobs" / "c1");
  EXPECT_FALSE(read().revisions[0].whole);
  EXPECT_TRUE(read().revisions[1].whole);
}

TEST_F(CachedModelsTest, RemovingARevisionKeepsTheBlobsOfOthers) {
  const CacheRemoval removal = plan_removal(read(), kOld);
  EXPECT_EQ(removal.bytes, 10u);
  remove_from_cache(removal, locks());
  EXPECT_TRUE(fs::exists(model() / "snapshots" / kNew / "model.safetensors"));
  EXPECT_FALSE(fs::exists(model() / "blobs" / "c1"));
  EXPECT_FALSE(fs::exists(model() / "snapshots" / kOld));
  EXPECT_FALSE(fs::exists(model() / "refs" / "refs" / "pr" / "1"));
  EXPECT_TRUE(fs::exists(model() / "refs" / "main"));
}

TEST_F(CachedModelsTest, RemovingTheLastRevisionRemovesTheModel) {
  remove_from_cache(plan_removal(read(), kOld), locks());
  remove_from_cache(plan_removal(read(), kNew), locks());
  EXPECT_FALSE(fs::exists(model()));
}

TEST_F(CachedModelsTest, RemovingAModelFreesItsUnfinishedDownloadsToo) {
  const CacheRemoval removal = plan_removal(read(), "");
  EXPECT_EQ(removal.bytes, 1035u);
  remove_from_cache(removal, locks());
  EXPECT_FALSE(fs::exists(model()));
}

// huggingface_hub keeps some blobs in a store of all models and links to them
// (utils/_shared_blobs.py).
TEST_F(CachedModelsTest, ABlobInTheSharedStoreIsCountedAndNotFreed) {
  fs::create_directories(cache_.path() / "blobs" / "ab");
  fs::rename(model() / "blobs" / "shared", cache_.path() / "blobs" / "ab" / "abc");
  fs::create_symlink("../../blobs/ab/abc", model() / "blobs" / "shared");
  EXPECT_EQ(read().bytes, 1030u);
  const CacheRemoval removal = plan_removal(read(), "");
  EXPECT_EQ(removal.bytes, 35u);
  remove_from_cache(removal, locks());
  EXPECT_TRUE(fs::exists(cache_.path() / "blobs" / "ab" / "abc"));
}

// Whoever wrote the snapshot, a link out of the cache frees nothing there.
TEST_F(CachedModelsTest, NothingOutsideTheModelIsRemoved) {
  const TemporaryFolder elsewhere;
  write_text(elsewhere.path() / "precious", "1");
  fs::create_symlink(elsewhere.path() / "precious", model() / "snapshots" / kOld / "x");
  fs::create_symlink("../../../../precious", model() / "snapshots" / kOld / "y");
  fs::create_directory_symlink(elsewhere.path(), model() / "snapshots" / kOld / "folder");
  write_text(cache_.path() / "precious", "1");
  remove_from_cache(plan_removal(read(), kOld), locks());
  EXPECT_TRUE(fs::exists(elsewhere.path() / "precious"));
  EXPECT_TRUE(fs::exists(cache_.path() / "precious"));
  EXPECT_FALSE(fs::exists(model() / "snapshots" / kOld));
}

TEST_F(CachedModelsTest, NothingIsRemovedWhileADownloadRuns) {
  const auto lock = CacheLock::try_lock(locks() / "shared.lock");
  const CacheRemoval removal = plan_removal(read(), "");
  EXPECT_EQ(error_of([&] { remove_from_cache(removal, locks()); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(fs::exists(model()));
}

TEST_F(CachedModelsTest, AnUnknownRevisionIsNotFound) {
  const std::string unknown(40, 'c');
  EXPECT_EQ(error_of([&] { plan_removal(read(), unknown); }).code(), ErrorCode::kNotFound);
}

TEST(RepositoryFolder, IsTheIdAndBack) {
  EXPECT_EQ(repository_folder({"owner", "name"}), "models--owner--name");
  EXPECT_EQ(repository_folder({"", "gpt2"}), "models--gpt2");
  EXPECT_EQ(hub_id_of_folder("models--owner--name"), (HubId{"owner", "name"}));
  EXPECT_EQ(hub_id_of_folder("models--gpt2"), (HubId{"", "gpt2"}));
  EXPECT_FALSE(hub_id_of_folder("models--a--b--c"));
  EXPECT_FALSE(hub_id_of_folder("datasets--a--b"));
  EXPECT_FALSE(hub_id_of_folder("models--..--x"));
}

}  // namespace
}  // namespace trtmc
