#include "server/model_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "tests/support/captured_log.h"
#include "tests/support/embedded_bundle.h"
#include "tests/support/error_of.h"
#include "tests/support/routes_test.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ModelCatalogueTest : public testing::Test {
 protected:
  // A file of its own with the embedded model, served by its name.
  std::shared_ptr<ServedModel> serve(const std::string& name, const LoadOptions& load = {}) {
    put_bundle(name);
    auto model = std::make_shared<ServedModel>(name, path_of(name), load, EngineOptions{});
    models_.put(model);
    return model;
  }
  fs::path path_of(const std::string& name) const { return folder_.path() / (name + ".trtmc"); }
  // As whoever builds a bundle does: the new file takes the place of the old one.
  void put_bundle(const std::string& name) {
    fs::copy_file(embedded_bundle(), folder_.path() / "new");
    fs::rename(folder_.path() / "new", path_of(name));
  }
  void put_text(const std::string& name, const std::string& text) {
    write_text(folder_.path() / "new", text);
    fs::rename(folder_.path() / "new", path_of(name));
  }
  void expect(const ModelCatalogue::Reload& reload, int replaced, int unchanged, int failed) {
    EXPECT_EQ(reload.replaced, replaced);
    EXPECT_EQ(reload.unchanged, unchanged);
    EXPECT_EQ(reload.failed, failed);
  }

  TemporaryFolder folder_;
  CapturedLog log_;
  ModelCatalogue models_;
};

TokenStream ask(ServedModel& model, int count) {
  GenerationRequest request;
  request.prompt = {1411, 1369, 257, 892};
  request.sampling.temperature = 0;
  request.max_tokens = count;
  request.ignore_eos = true;
  return model.engine.submit(std::move(request));
}

std::vector<TokenId> tokens_of(TokenStream& stream) {
  std::vector<TokenId> tokens;
  while (const auto event = stream.next()) {
    EXPECT_NE(event->finish, FinishReason::kError) << event->error;
    if (event->token >= 0) tokens.push_back(event->token);
  }
  return tokens;
}

TEST_F(ModelCatalogueTest, EachModelHasItsKvMemoryAndItsEngine) {
  LoadOptions small, large;
  small.executor.kv_memory_bytes = 1 << 20;
  large.executor.kv_memory_bytes = 4 << 20;
  const auto a = serve("a", small), b = serve("b", large);
  EXPECT_LE(a->memory.kv_budget_bytes, uint64_t{1} << 20);
  EXPECT_GT(b->memory.kv_budget_bytes, uint64_t{3} << 20);
  EXPECT_EQ(models_.find("a"), a);
  EXPECT_EQ(models_.find("b"), b);
  auto of_a = ask(*a, 5), of_b = ask(*b, 5);
  EXPECT_EQ(tokens_of(of_a), tokens_of(of_b));
  EXPECT_LT(a->engine.stats().kv_blocks, b->engine.stats().kv_blocks);
}

TEST_F(ModelCatalogueTest, WithoutANameTheOnlyModelIsMeant) {
  const auto a = serve("a");
  EXPECT_EQ(models_.find(""), a);
  serve("b");
  const Error error = error_of([&] { models_.find(""); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "model: missing, expected one of \"a\", \"b\"");
}

TEST_F(ModelCatalogueTest, WhatHasNotChangedIsLeftAlone) {
  const auto a = serve("a");
  expect(models_.reload(), 0, 1, 0);
  EXPECT_EQ(models_.find("a"), a);
}

TEST_F(ModelCatalogueTest, AChangedBundleIsLoadedAndTheOldOneEndsAfterItsAnswers) {
  auto old = serve("a");
  const auto other = serve("b");
  auto stream = std::make_unique<TokenStream>(ask(*old, 400));
  const std::weak_ptr<ServedModel> watched = old;
  put_bundle("a");
  expect(models_.reload(), 1, 1, 0);

  const auto fresh = models_.find("a");
  EXPECT_NE(fresh, old);
  EXPECT_EQ(models_.find("b"), other);
  EXPECT_EQ(models_.all().front(), fresh);  // In the old one's place.
  auto again = ask(*fresh, 400);
  EXPECT_EQ(tokens_of(*stream), tokens_of(again));  // The one before goes on to its end.
  stream.reset();
  old.reset();
  while (!watched.expired()) std::this_thread::yield();
  EXPECT_THAT(log_.lines().back(), HasSubstr("model \"a\": loaded again from "));
}

TEST_F(ModelCatalogueTest, ABundleThatCannotBeLoadedLeavesTheOldOne) {
  const auto a = serve("a");
  const auto b = serve("b");
  for (const bool is_there : {true, false}) {
    put_text("a", "no bundle");
    if (!is_there) fs::remove(path_of("a"));
    expect(models_.reload(), 0, 1, 1);
    EXPECT_EQ(models_.find("a"), a);
    EXPECT_THAT(log_.lines().back(),
                HasSubstr("model \"a\": can't be loaded again, so it stays as it was: "));
    EXPECT_THAT(log_.lines().back(), HasSubstr(path_of("a").string()));
    auto stream = ask(*a, 5);
    EXPECT_EQ(tokens_of(stream).size(), 5u);
  }
  put_bundle("a");
  expect(models_.reload(), 1, 1, 0);
}

TEST_F(ModelCatalogueTest, AnEngineThatLostItsDeviceGetsANewOne) {
  bool is_gone = true;
  LoadOptions options;
  options.executor.hidden_state_probe = [&](int, std::span<const float>) {
    if (is_gone) throw std::runtime_error("the device is gone");
  };
  const auto lost = serve("a", options);
  answer_once(*lost, 1);
  EXPECT_FALSE(lost->engine.healthy());
  is_gone = false;
  expect(models_.reload(), 1, 0, 0);
  auto stream = ask(*models_.find("a"), 3);
  EXPECT_EQ(tokens_of(stream).size(), 3u);
}

}  // namespace
}  // namespace trtmc
