// The server with all of its parts, over real sockets: what its threads do to each other while
// clients come, models are loaded again, and it ends.
#include "server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "tests/support/embedded_bundle.h"
#include "tests/support/http_peer.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kWhole[] =
    R"({"prompt": [300, 301, 302], "max_tokens": 8, "temperature": 0, "ignore_eos": true})";
// The model's context ends it.
constexpr char kEndless[] =
    R"({"prompt": [300], "temperature": 0, "ignore_eos": true, "max_tokens": 4000, "stream": true})";
constexpr char kShort[] =
    R"({"prompt": [300], "temperature": 0, "ignore_eos": true, "max_tokens": 40, "stream": true})";

std::string post_request(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    set_log_sink([](LogLevel, std::string_view) {});
    put_bundle();
    ServiceOptions options;
    options.bundles = {{"tiny", bundle_}};
    options.load.executor.num_threads = 1;
    options.http = local_options();
    options.request_log = RequestLogFormat::kText;
    service_.emplace(options);
    const std::string url = service_->url();
    std::from_chars(url.data() + url.rfind(':') + 1, url.data() + url.size(), port_);
  }
  ~ServiceTest() override {
    service_.reset();
    set_log_sink({});
  }

  // As whoever builds a bundle does: the new file takes the place of the old one.
  void put_bundle() {
    fs::copy_file(embedded_bundle(), folder_.path() / "new");
    fs::rename(folder_.path() / "new", bundle_);
  }
  std::string post(std::string_view path, std::string_view body) const {
    return ask(port_, post_request(path, body));
  }
  std::string text_of_completion() const {
    const std::string answer = post("/v1/completions", kWhole);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
    const Json json = Json::parse(body_of(answer));
    return JsonCursor(json).at("choices").elements().at(0).at("text").string();
  }
  // A stream whose first piece has come.
  std::unique_ptr<RawSocket> stream_of(std::string_view body) const {
    auto socket = std::make_unique<RawSocket>(port_);
    socket->send(post_request("/v1/completions", body));
    EXPECT_THAT(socket->read_until("data: "), StartsWith("HTTP/1.1 200 "));
    return socket;
  }
  bool drain(std::chrono::milliseconds patience, bool is_impatient = false) {
    return service_->drain(std::chrono::steady_clock::now() + patience,
                           [=] { return is_impatient; });
  }

  // What a client gets whose stream is cut off by `drain`.
  std::string rest_of_stream(const std::function<bool()>& drain) const {
    const auto stream = stream_of(kEndless);
    std::string rest;
    std::thread client([&] { rest = stream->read_to_end(); });
    EXPECT_FALSE(drain());
    client.join();
    return rest;
  }

  TemporaryFolder folder_;
  const fs::path bundle_ = folder_.path() / "tiny.trtmc";
  std::optional<Service> service_;
  uint16_t port_ = 0;
};

TEST_F(ServiceTest, AnswersWhileItsModelIsLoadedAgain) {
  const std::string text = text_of_completion();
  EXPECT_THAT(text, Not(testing::IsEmpty()));
  std::atomic<bool> is_over = false;
  std::atomic<int> num_answers = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      for (; !is_over; ++num_answers) EXPECT_EQ(text_of_completion(), text);
    });
  }
  clients.emplace_back([&] {
    for (; !is_over; ++num_answers) stream_of(kEndless);  // And goes.
  });
  clients.emplace_back([&] {
    for (; !is_over; ++num_answers) {
      EXPECT_THAT(ask(port_, get_request("/health/ready")), StartsWith("HTTP/1.1 200 "));
      EXPECT_THAT(ask(port_, get_request("/metrics")), HasSubstr("trtmc_engine_healthy"));
      EXPECT_THAT(post("/tokenize", R"({"prompt": "a"})"), HasSubstr("\"count\":1"));
    }
  });
  for (int i = 0; i < 3; ++i) {
    const int before = num_answers;
    put_bundle();
    service_->reload();
    while (num_answers < before + 10) std::this_thread::yield();
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
}

TEST_F(ServiceTest, ADrainLetsWhatRunsEnd) {
  const auto stream = stream_of(kShort);
  std::thread client([&] { EXPECT_THAT(stream->read_to_end(), HasSubstr("data: [DONE]")); });
  EXPECT_TRUE(drain(std::chrono::minutes(2)));
  client.join();
  EXPECT_THROW(RawSocket{port_}, std::runtime_error);
}

TEST_F(ServiceTest, WhatDoesNotEndInTimeIsCutOffAndToldSo) {
  EXPECT_THAT(rest_of_stream([&] { return drain(std::chrono::milliseconds(20)); }),
              AllOf(HasSubstr("since the server stops"), Not(HasSubstr("[DONE]"))));
}

TEST_F(ServiceTest, AnImpatientDrainCutsOffAtOnce) {
  EXPECT_THAT(rest_of_stream([&] { return drain(std::chrono::minutes(2), true); }),
              AllOf(HasSubstr("since the server stops"), Not(HasSubstr("[DONE]"))));
}

TEST_F(ServiceTest, CutsOffWhatRunsWhenItDies) {
  const auto stream = stream_of(kEndless);
  std::thread client([&] { EXPECT_THAT(stream->read_to_end(), Not(HasSubstr("[DONE]"))); });
  service_.reset();
  client.join();
}

}  // namespace
}  // namespace trtmc
