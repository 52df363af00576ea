#include "hub/hub_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/cache_lock.h"
#include "hub/file_digest.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_transport.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kCommit = "a07cc9a04f16550a088caea529712d1d335b0ac1";
constexpr std::string_view kConfig = "{\"a\": 1}";
constexpr std::string_view kWeights = "0123456789abcdefghijklmnopqrstuvwxyz";
const HubSource kSource{{"owner", "name"}, ""};

std::string git_blob_id(std::string_view text) {
  Sha1 hash;
  hash.update(as_bytes(fmt::format("blob {}", text.size()) + '\0'));
  hash.update(as_bytes(text));
  return to_hex(hash.finish());
}

std::string listing_json() {
  return fmt::format(
      R"({{"sha": "{}", "siblings": [
            {{"rfilename": "config.json", "size": {}, "blobId": "{}"}},
            {{"rfilename": "model.safetensors", "size": {}, "blobId": "{}",
              "lfs": {{"sha256": "{}", "size": {}}}}}]}})",
      kCommit, kConfig.size(), git_blob_id(kConfig), kWeights.size(), git_blob_id("pointer"),
      to_hex(sha256(as_bytes(kWeights))), kWeights.size());
}

// Part of `text` as a server that knows ranges gives it.
FakeAnswer part_of(std::string_view text, const FetchRequest& request) {
  if (!request.first)
    return {.headers = {{"content-length", std::to_string(text.size())}},
            .body = std::string(text)};
  const uint64_t last = std::min<uint64_t>(request.last.value_or(text.size()), text.size() - 1);
  return {.status = 206,
          .headers = {{"content-range",
                       fmt::format("bytes {}-{}/{}", *request.first, last, text.size())}},
          .body = std::string(text.substr(*request.first, last - *request.first + 1))};
}

// A hub that holds one model, honestly.
FakeAnswer honest(const FetchRequest& request) {
  if (request.url.ends_with("/api/models/owner/name/revision/main?blobs=true")) {
    return {.body = listing_json()};
  }
  if (request.url.ends_with(fmt::format("/owner/name/resolve/{}/config.json", kCommit))) {
    return part_of(kConfig, request);
  }
  if (request.url.ends_with(fmt::format("/owner/name/resolve/{}/model.safetensors", kCommit))) {
    return part_of(kWeights, request);
  }
  return {.status = 404};
}

bool is_for_weights(const FetchRequest& request) {
  return request.url.ends_with("model.safetensors");
}

class HubClientTest : public testing::Test {
 protected:
  Snapshot pull(FakeNetwork::Answer answer = honest) {
    network_ = std::make_unique<FakeNetwork>(std::move(answer));
    return client().pull(kSource, observer_, stop_.get_token());
  }
  HubClient client() const {
    return {settings_,
            network_->transports(),
            {.connections = 3,
             .chunk_bytes = 10,
             .retry = {.attempts = 3,
                       .first_wait = std::chrono::milliseconds(1),
                       .longest_wait = std::chrono::milliseconds(1)}}};
  }
  Error refusal(FakeNetwork::Answer answer) {
    return error_of([&] { pull(std::move(answer)); });
  }
  fs::path repository() const { return settings_.cache / "models--owner--name"; }
  fs::path blob_of_weights() const {
    return repository() / "blobs" / to_hex(sha256(as_bytes(kWeights)));
  }
  void expect_whole(const Snapshot& snapshot) const {
    EXPECT_EQ(read_file(snapshot.folder / "config.json"), kConfig);
    EXPECT_EQ(read_file(snapshot.folder / "model.safetensors"), kWeights);
  }

  TemporaryFolder folder_;
  HubSettings settings_{.endpoint = "https://hub.example", .cache = folder_.path() / "hub"};
  PullObserver observer_;
  std::stop_source stop_;
  std::unique_ptr<FakeNetwork> network_ = std::make_unique<FakeNetwork>(honest);
};

// The layout of https://huggingface.co/docs/huggingface_hub/guides/manage-cache.
TEST_F(HubClientTest, PutsFilesWhereHuggingFaceLooksForThem) {
  const Snapshot snapshot = pull();
  expect_whole(snapshot);
  EXPECT_EQ(snapshot.folder, repository() / "snapshots" / kCommit);
  EXPECT_EQ(fs::read_symlink(snapshot.folder / "config.json"),
            fs::path("../../blobs") / git_blob_id(kConfig));
  EXPECT_EQ(fs::read_symlink(snapshot.folder / "model.safetensors"),
            fs::path("../../blobs") / to_hex(sha256(as_bytes(kWeights))));
  EXPECT_EQ(read_file(repository() / "refs" / "main"), kCommit);
  EXPECT_TRUE(fs::exists(settings_.cache / ".locks" / "models--owner--name" /
                         (git_blob_id(kConfig) + ".lock")));
}

TEST_F(HubClientTest, FetchesLargeFilesInChunks) {
  pull();
  std::vector<uint64_t> firsts;
  for (const FetchRequest& request : network_->requests()) {
    if (is_for_weights(request)) firsts.push_back(*request.first);
  }
  EXPECT_THAT(firsts, testing::UnorderedElementsAre(0, 10, 20, 30));
}

TEST_F(HubClientTest, FetchesNothingThatIsThere) {
  EXPECT_EQ(pull().downloaded_bytes, kConfig.size() + kWeights.size());
  const Snapshot again = pull();
  EXPECT_EQ(again.downloaded_bytes, 0u);
  EXPECT_EQ(network_->requests().size(), 1u);
  expect_whole(again);
}

TEST_F(HubClientTest, ADamagedSizeIsNoFileAndIsFetchedAnew) {
  pull();
  fs::resize_file(blob_of_weights(), 5);
  EXPECT_EQ(pull().downloaded_bytes, kWeights.size());
  expect_whole(client().cached(kSource));
}

TEST_F(HubClientTest, GoesOnWhereACutDownloadStopped) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (!is_for_weights(request)) return answer;
    if (*request.first % 10 != 0) return FakeAnswer{.status = 503};
    answer.body.resize(6);
    answer.cut = true;
    return answer;
  });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  EXPECT_FALSE(fs::exists(repository() / "snapshots"));
  expect_whole(pull());
  for (const FetchRequest& request : network_->requests()) {
    if (is_for_weights(request)) {
      EXPECT_GE(*request.first, 6u);
    }
  }
}

TEST_F(HubClientTest, AServerThatIgnoresRangesGivesTheFileInOnePiece) {
  expect_whole(pull([](FetchRequest request) {
    if (is_for_weights(request)) request.first = {};
    return honest(request);
  }));
}

TEST_F(HubClientTest, AServerThatIgnoresSomeRangesIsNoDangerEither) {
  int times = 0;
  expect_whole(pull([&](FetchRequest request) {
    if (is_for_weights(request) && ++times % 2 == 0) request.first = {};
    return honest(request);
  }));
}

TEST_F(HubClientTest, RefusesBytesThatHashToSomethingElse) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (is_for_weights(request)) answer.body[0] ^= 1;
    return answer;
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("owner/name: model.safetensors: the bytes hash to "));
  EXPECT_FALSE(fs::exists(blob_of_weights()));
  EXPECT_FALSE(fs::exists(repository() / "snapshots"));
  expect_whole(pull());
}

TEST_F(HubClientTest, RefusesAnotherPartThanTheOneAskedFor) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (is_for_weights(request)) answer.headers["content-range"] = "bytes 5-14/36";
    return answer;
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
}

TEST_F(HubClientTest, RefusesAFileOfAnotherSize) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (is_for_weights(request)) {
      answer.headers["content-range"] =
          fmt::format("bytes {}-{}/37", *request.first, *request.last);
    }
    return answer;
  });
  EXPECT_THAT(error.what(), HasSubstr("a file of 37 bytes, but its list says 36"));
}

TEST_F(HubClientTest, RefusesMoreBytesThanWereAskedFor) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (is_for_weights(request)) answer.body += std::string(100, 'x');
    return answer;
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("more bytes than were asked for"));
}

TEST_F(HubClientTest, AnAnswerThatEndsEarlyIsTriedAgainAndNotForEver) {
  const Error error = refusal([](const FetchRequest& request) {
    FakeAnswer answer = honest(request);
    if (is_for_weights(request)) answer.body.clear();
    return answer;
  });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("ended its answer early (3 attempts)"));
}

TEST_F(HubClientTest, AStopKeepsWhatHasArrived) {
  EXPECT_THROW(pull([&](const FetchRequest& request) {
                 FakeAnswer answer = honest(request);
                 if (!is_for_weights(request)) return answer;
                 if (*request.first > 0) stop_.request_stop();
                 return answer;
               }),
               DownloadStopped);
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  stop_ = {};
  expect_whole(pull());
}

TEST_F(HubClientTest, WaitsForAnotherProgramsDownloadAndUsesIt) {
  const fs::path lock_path = settings_.cache / ".locks" / "models--owner--name" /
                             (blob_of_weights().filename().string() + ".lock");
  auto lock = CacheLock::try_lock(lock_path);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(CacheLock::try_lock(lock_path));
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    fs::create_directories(blob_of_weights().parent_path());
    write_text(blob_of_weights(), kWeights);
    lock.reset();
  });
  expect_whole(pull());
  for (const FetchRequest& request : network_->requests()) EXPECT_FALSE(is_for_weights(request));
}

TEST_F(HubClientTest, ABranchThatMovedSharesItsUnchangedBlobs) {
  pull();
  const std::string next = "b07cc9a04f16550a088caea529712d1d335b0ac1";
  const Snapshot moved = pull([&](FetchRequest request) {
    const size_t at = request.url.find(next);
    if (at != std::string::npos) request.url.replace(at, next.size(), kCommit);
    FakeAnswer answer = honest(request);
    const size_t commit = answer.body.find(kCommit);
    if (commit != std::string::npos) answer.body.replace(commit, next.size(), next);
    return answer;
  });
  EXPECT_EQ(moved.downloaded_bytes, 0u);
  EXPECT_EQ(moved.commit, next);
  EXPECT_EQ(read_file(repository() / "refs" / "main"), next);
  expect_whole(moved);
}

TEST_F(HubClientTest, OfflineAsksNobody) {
  settings_.offline = true;
  const Error error = refusal(honest);
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("owner/name: not in the cache"));
  settings_.offline = false;
  pull();
  settings_.offline = true;
  expect_whole(pull());
  EXPECT_TRUE(network_->requests().empty());
}

TEST_F(HubClientTest, WithoutSymlinksASnapshotHoldsCopies) {
  settings_.symlinks = false;
  const Snapshot snapshot = pull();
  EXPECT_FALSE(fs::is_symlink(snapshot.folder / "config.json"));
  expect_whole(snapshot);
}

TEST_F(HubClientTest, ACommitIsAnsweredWithThatCommitOrRefused) {
  network_ = std::make_unique<FakeNetwork>(
      [](const FetchRequest&) { return FakeAnswer{.body = listing_json()}; });
  const HubSource other{{"owner", "name"}, std::string(40, 'c')};
  const Error error = error_of([&] { client().pull(other, observer_, stop_.get_token()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
}

TEST_F(HubClientTest, AModelThatNobodyCanUseIsRefusedBeforeItsWeights) {
  observer_.on_config = [](const std::string& config) {
    EXPECT_EQ(config, kConfig);
    throw Error(ErrorCode::kUnsupported, "no such family");
  };
  EXPECT_STREQ(refusal(honest).what(), "owner/name: no such family");
  for (const FetchRequest& request : network_->requests()) EXPECT_FALSE(is_for_weights(request));
}

TEST_F(HubClientTest, ProgressRunsToTheTotal) {
  uint64_t last = 0;
  observer_.on_progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, kConfig.size() + kWeights.size());
    last = done;
  };
  pull();
  EXPECT_EQ(last, kConfig.size() + kWeights.size());
}

// git's own name of a file of six bytes: `printf 'hello\n' | git hash-object --stdin`.
TEST(FileDigest, OfAGitBlobIsGitsName) {
  const TemporaryFolder folder;
  write_text(folder.path() / "x", "hello\n and counts behind it");
  EXPECT_EQ(file_digest(folder.path() / "x", 6, FileDigest::Kind::kGitSha1, {}),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace trtmc
