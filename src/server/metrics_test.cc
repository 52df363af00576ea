#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "server/generation_task.h"
#include "server/metrics_api.h"
#include "tests/support/routes_test.h"

namespace trtmc {
namespace {

using testing::HasSubstr;
using testing::Not;

class MetricsTest : public RoutesTest {
 protected:
  MetricsTest() {
    add_metrics_api(router_, metrics_, models_, [] { return 3; });
  }

  std::string text() {
    const HttpResponse response = answer("GET", "/metrics");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    return response.body;
  }
  // The value of the line of that name and those labels; "none" if there is no such line.
  std::string value(const std::string& series) {
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(series + " ")) return line.substr(series.size() + 1);
    }
    return "none";
  }
  std::shared_ptr<ServedModel> serve_observed(const std::string& name) {
    auto model = std::make_shared<ServedModel>(name, embedded_bundle(), LoadOptions{},
                                               EngineOptions{}, metrics_.observer_of(name));
    models_.put(model);
    return model;
  }

  Metrics metrics_{"1.2.3", "abc"};
};

TEST_F(MetricsTest, SaysWhatItWasBuiltFromAndWhoIsConnected) {
  EXPECT_EQ(value(R"(trtmc_build_info{commit="abc",version="1.2.3"})"), "1");
  EXPECT_EQ(value("trtmc_http_connections"), "3");
}

TEST_F(MetricsTest, RequestsAreCountedByMethodRouteAndStatus) {
  metrics_.count_request("GET", "/v1/models", 200, 0.02);
  metrics_.count_request("GET", "/v1/models", 200, 0.2);
  metrics_.count_request("GET", "/v1/models", 404, 7);
  metrics_.count_request("BREW", "other", 405, 1);
  const std::string series = "trtmc_http_requests_total";
  EXPECT_EQ(value(series + R"({method="GET",route="/v1/models",status="200"})"), "2");
  EXPECT_EQ(value(series + R"({method="GET",route="/v1/models",status="404"})"), "1");
  EXPECT_EQ(value(series + R"({method="other",route="other",status="405"})"), "1");
  const std::string durations = "trtmc_http_request_duration_seconds_";
  EXPECT_EQ(value(durations + R"(count{route="/v1/models"})"), "3");
  EXPECT_EQ(value(durations + R"(bucket{route="/v1/models",le="0.05"})"), "1");
  EXPECT_EQ(value(durations + R"(bucket{route="/v1/models",le="10"})"), "3");
}

TEST_F(MetricsTest, ARequestIsInFlightUntilItsExchangeIsDropped) {
  auto exchange = metrics_.in_flight(std::make_shared<FakeExchange>(request_of("GET", "/")));
  const auto held = exchange;
  EXPECT_EQ(exchange->request().path, "/");
  EXPECT_EQ(value("trtmc_http_requests_in_flight"), "1");
  exchange.reset();
  EXPECT_EQ(value("trtmc_http_requests_in_flight"), "1");
}

TEST_F(MetricsTest, ARequestThatIsOverIsNotInFlight) {
  metrics_.in_flight(std::make_shared<FakeExchange>(request_of("GET", "/")));
  EXPECT_EQ(value("trtmc_http_requests_in_flight"), "0");
}

TEST_F(MetricsTest, AModelsNameIsEscaped) {
  serve_observed("a\"b\\c");
  EXPECT_EQ(value(R"(trtmc_requests_queued{model="a\"b\\c"})"), "0");
}

TEST_F(MetricsTest, HasNoEnginesBeforeTheyAreThere) {
  EXPECT_THAT(text(), Not(HasSubstr("trtmc_steps_total")));
  serve_observed("a");
  EXPECT_EQ(value(R"(trtmc_steps_total{model="a"})"), "0");
  EXPECT_EQ(value(R"(trtmc_engine_healthy{model="a"})"), "1");
}

// Takes the answers and shows nothing of them, but ends the exchange.
class SilentWriter final : public AnswerWriter {
 public:
  explicit SilentWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  void begin() override {}
  void add(int, const Delta&) override {}
  void end_choice(int, const Answer&) override {}
  void end(const Usage&) override {
    exchange_->respond({.status = 200, .headers = {}, .body = {}});
  }
  void fail(const ApiError& error) override { exchange_->respond(error_response(error)); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

// Two answers of five tokens to a prompt of four; returns once they are complete.
void answer_twice(EventPump& pump, std::shared_ptr<ServedModel> model) {
  auto exchange = std::make_shared<FakeExchange>(request_of("POST", "/v1/completions"));
  GenerationJob job;
  job.model = std::move(model);
  job.requests.emplace_back();
  job.requests[0].prompt = {1411, 1369, 257, 892};
  job.requests[0].max_tokens = 5;
  job.requests[0].n = 2;
  job.requests[0].ignore_eos = true;
  job.writer = std::make_unique<SilentWriter>(exchange);
  start_generation(pump, exchange, std::move(job));
  EXPECT_EQ(exchange->await().status, 200);
}

TEST_F(MetricsTest, EveryTokenOfAnAnswerIsCounted) {
  const auto model = serve_observed("a");
  const auto other = serve_observed("b");
  for (int i = 0; i < 3; ++i) answer_twice(pump_, model);
  while (model->engine.stats().running_sequences > 0 || pump_.num_tasks() > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(value(R"(trtmc_prompt_tokens_total{model="a"})"), "12");
  EXPECT_EQ(value(R"(trtmc_generated_tokens_total{model="a"})"), "30");
  EXPECT_EQ(value(R"(trtmc_generated_tokens_total{model="b"})"), "0");
  EXPECT_EQ(value(R"(trtmc_answers_total{model="a",reason="length"})"), "6");
  EXPECT_EQ(value(R"(trtmc_answers_total{model="a",reason="error"})"), "0");
  EXPECT_EQ(value(R"(trtmc_time_to_first_token_seconds_count{model="a"})"), "3");
  EXPECT_EQ(value(R"(trtmc_inter_token_seconds_count{model="a"})"), "24");  // 3 * 2 * 4.
  EXPECT_EQ(value(R"(trtmc_generation_seconds_count{model="a"})"), "3");
  EXPECT_EQ(value(R"(trtmc_requests_queued{model="a"})"), "0");
  EXPECT_EQ(value(R"(vllm:num_requests_waiting{model_name="a"})"), "0");
  EXPECT_EQ(value(R"(vllm:kv_cache_usage_perc{model_name="a"})"), "0");
}

TEST_F(MetricsTest, StepsAreCountedByTheirSize) {
  const auto model = serve_observed("a");
  answer_once(*model, 5);
  while (model->engine.stats().running_sequences > 0) std::this_thread::yield();
  EXPECT_EQ(value(R"(trtmc_step_sequences_bucket{model="a",le="1"})"), "5");
  EXPECT_EQ(value(R"(trtmc_step_sequences_bucket{model="a",le="512"})"), "5");
  EXPECT_EQ(value(R"(trtmc_step_sequences_bucket{model="a",le="+Inf"})"), "5");
  EXPECT_EQ(value(R"(trtmc_step_sequences_sum{model="a"})"), "5");
  EXPECT_EQ(value(R"(trtmc_step_sequences_count{model="a"})"), "5");
  EXPECT_EQ(value(R"(trtmc_computed_tokens_total{model="a"})"), "8");
}

TEST_F(MetricsTest, AModelThatIsLoadedAgainGoesOnWithItsHistograms) {
  answer_twice(pump_, serve_observed("a"));
  answer_twice(pump_, serve_observed("a"));
  while (pump_.num_tasks() > 0) std::this_thread::yield();
  EXPECT_EQ(value(R"(trtmc_generation_seconds_count{model="a"})"), "2");
}

}  // namespace
}  // namespace trtmc
