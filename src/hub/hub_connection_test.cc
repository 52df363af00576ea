#include "hub/hub_connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_transport.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

constexpr RetryPolicy kQuick{.attempts = 3,
                             .first_wait = std::chrono::milliseconds(1),
                             .longest_wait = std::chrono::milliseconds(2),
                             .longest_retry_after_s = 5};

class HubConnectionTest : public testing::Test {
 protected:
  std::string get(FakeNetwork::Answer answer, const std::string& endpoint = "https://hub.example",
                  const std::string& token = "hf_secret") {
    network_ = std::make_unique<FakeNetwork>(std::move(answer));
    HubConnection connection(network_->transports()(), endpoint, token, stop_.get_token());
    return connection.get_text("/a", 100, kQuick);
  }
  Error refusal(FakeNetwork::Answer answer, const std::string& token = "") {
    return error_of([&] { get(std::move(answer), "https://hub.example", token); });
  }
  std::vector<std::string> tokens() const {
    std::vector<std::string> tokens;
    for (const FetchRequest& request : network_->requests()) tokens.push_back(request.token);
    return tokens;
  }

  std::stop_source stop_;
  std::unique_ptr<FakeNetwork> network_;
};

// Sends the first request to `location`, and answers the second.
FakeNetwork::Answer redirect_to(const std::string& location) {
  return [location, first = true](const FetchRequest&) mutable {
    if (!std::exchange(first, false)) return FakeAnswer{.body = "there"};
    return FakeAnswer{.status = 302, .headers = {{"location", location}}, .body = "moved"};
  };
}

TEST_F(HubConnectionTest, TheTokenGoesToTheEndpointAlone) {
  for (const char* elsewhere :
       {"https://cdn.example/x", "https://hub.example:444/x", "https://hub.example.evil.org/x",
        "//cdn.example/x", "https://hub.example@cdn.example/x"}) {
    EXPECT_EQ(get(redirect_to(elsewhere)), "there");
    EXPECT_THAT(tokens(), testing::ElementsAre("hf_secret", "")) << elsewhere;
  }
  for (const char* same : {"/x", "x?y", "https://hub.example/x", "https://HUB.example:443/x"}) {
    EXPECT_EQ(get(redirect_to(same)), "there");
    EXPECT_THAT(tokens(), testing::ElementsAre("hf_secret", "hf_secret")) << same;
  }
}

TEST_F(HubConnectionTest, ARedirectMayNotGiveUpEncryption) {
  const Error error = refusal(redirect_to("http://hub.example/x"));
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(network_->requests().size(), 1u);
  EXPECT_EQ(get(redirect_to("http://cdn.example/x"), "http://hub.example"), "there");
}

TEST_F(HubConnectionTest, ARedirectGoesToAWebAddress) {
  for (const char* bad : {"", "file:///etc/passwd", "ftp://x/y", "https://", "https://a b/"}) {
    EXPECT_EQ(refusal(redirect_to(bad)).code(), ErrorCode::kCorrupt) << bad;
    EXPECT_EQ(network_->requests().size(), 1u);
  }
}

TEST_F(HubConnectionTest, RedirectsEnd) {
  const Error error = refusal([](const FetchRequest&) {
    return FakeAnswer{.status = 307, .headers = {{"location", "/a"}}};
  });
  EXPECT_STREQ(error.what(), "the server redirects more than 10 times");
  EXPECT_EQ(network_->requests().size(), 11u);
}

TEST_F(HubConnectionTest, TriesAgainWhatMayPass) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    int times = 0;
    EXPECT_EQ(get([&](const FetchRequest&) {
                return ++times < 3 ? FakeAnswer{.status = status, .body = "busy"}
                                   : FakeAnswer{.body = "well"};
              }),
              "well");
  }
}

TEST_F(HubConnectionTest, GivesUpWhatDoesNotPass) {
  const Error error = refusal([](const FetchRequest&) { return FakeAnswer{.status = 503}; });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_STREQ(error.what(), "the server is in trouble (503) (3 attempts)");
}

TEST_F(HubConnectionTest, AServerThatIsNotThereIsAskedOnce) {
  const Error error = refusal([](const FetchRequest&) -> FakeAnswer {
    throw TransientFailure{"no connection", 0, true};
  });
  EXPECT_STREQ(error.what(), "https://hub.example:443: no connection");
  EXPECT_EQ(network_->requests().size(), 1u);
}

TEST_F(HubConnectionTest, WaitsAsLongAsTheServerAsksButNotForHours) {
  int times = 0;
  const auto start = std::chrono::steady_clock::now();
  get([&](const FetchRequest&) {
    return ++times < 2 ? FakeAnswer{.status = 429, .retry_after_s = 1} : FakeAnswer{};
  });
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  const Error error =
      refusal([](const FetchRequest&) { return FakeAnswer{.status = 429, .retry_after_s = 3600}; });
  EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  EXPECT_THAT(error.what(), HasSubstr("asks to wait 3600 s"));
}

TEST_F(HubConnectionTest, ARefusalSaysWhatItMeans) {
  const auto answering = [](int status, const std::string& code) {
    return [=](const FetchRequest&) {
      return FakeAnswer{.status = status, .headers = {{"x-error-code", code}}};
    };
  };
  EXPECT_STREQ(refusal(answering(404, "RevisionNotFound")).what(), "no such revision");
  EXPECT_STREQ(refusal(answering(404, "RepoNotFound")).what(), "no such model (404)");
  const Error gated = refusal(answering(403, "GatedRepo"));
  EXPECT_EQ(gated.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(gated.what(), "access is granted to certain users only (403)");
  EXPECT_THAT(gated.hint(), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(refusal(answering(401, "")).what(), HasSubstr("needs a token"));
  EXPECT_THAT(refusal(answering(401, ""), "hf_old").what(), HasSubstr("the token is not valid"));
}

TEST_F(HubConnectionTest, WhatAServerSaysCanNotCommandATerminal) {
  const Error error = refusal([](const FetchRequest&) {
    return FakeAnswer{.status = 400,
                      .headers = {{"x-error-message", "\x1b[2J" + std::string(1000, 'x')}}};
  });
  EXPECT_THAT(error.what(), HasSubstr("the server answers 400: ?[2Jx"));
  EXPECT_LT(std::string(error.what()).size(), 300u);
}

TEST_F(HubConnectionTest, AnEndlessBodyEnds) {
  const Error error =
      refusal([](const FetchRequest&) { return FakeAnswer{.body = std::string(1000, 'x')}; });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "the server sends more than 100 bytes");
}

TEST_F(HubConnectionTest, AStopEndsTheWaiting) {
  EXPECT_THROW(get([&](const FetchRequest&) {
                 stop_.request_stop();
                 return FakeAnswer{.status = 503};
               }),
               DownloadStopped);
}

}  // namespace
}  // namespace trtmc
