#include "server/health_api.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/support/captured_log.h"
#include "tests/support/routes_test.h"

namespace trtmc {
namespace {

class HealthApi : public RoutesTest {
 protected:
  HealthApi() { add_health_api(router_, models_, phase_); }

  // "200 live", or "503 unhealthy: reason".
  std::string health(const std::string& path) {
    const HttpResponse response = answer("GET", path);
    const Json json = json_of(response.status, response);
    const Json* const reason = json.find("reason");
    return std::to_string(response.status) + " " + *json.find("status")->string() +
           (reason ? ": " + *reason->string() : "");
  }

  std::atomic<ServerPhase> phase_ = ServerPhase::kServing;
};

TEST_F(HealthApi, AServerThatServesIsWell) {
  serve("a");
  EXPECT_EQ(health("/health/live"), "200 live");
  EXPECT_EQ(health("/health/startup"), "200 started");
  EXPECT_EQ(health("/health/ready"), "200 ready");
  EXPECT_EQ(health("/health"), "200 ready");
}

TEST_F(HealthApi, AServerThatStartsIsLiveButNotReady) {
  phase_ = ServerPhase::kStarting;
  EXPECT_EQ(health("/health/live"), "200 live");
  EXPECT_EQ(health("/health/startup"), "503 starting: the models are being loaded");
  EXPECT_EQ(health("/health/ready"), "503 starting: the models are being loaded");
}

TEST_F(HealthApi, AServerThatDrainsIsLiveAndStartedButNotReady) {
  phase_ = ServerPhase::kDraining;
  EXPECT_EQ(health("/health/live"), "200 live");
  EXPECT_EQ(health("/health/startup"), "200 started");
  EXPECT_EQ(health("/health"), "503 draining: the server ends as soon as its answers have");
}

TEST_F(HealthApi, AnEngineWithoutItsDeviceIsNamed) {
  serve("a");
  const auto lost = serve("b", losing_its_device());
  EXPECT_EQ(health("/health/ready"), "200 ready");
  answer_once(*lost, 1);
  const std::string reason = "503 unhealthy: the engine of \"b\" has lost its device";
  EXPECT_EQ(health("/health/ready"), reason);
  EXPECT_EQ(health("/health/live"), reason);
  EXPECT_EQ(health("/health/startup"), "200 started");
}

TEST_F(HealthApi, AnEngineWhoseStepsFailOneAfterTheOtherIsNotReady) {
  const CapturedLog log;
  std::atomic<bool> fails = true;
  LoadOptions load;
  load.executor.hidden_state_probe = [&](int, std::span<const float>) {
    if (fails) throw Error(ErrorCode::kExhausted, "no memory for scratch");
  };
  const auto model = serve("a", load);
  for (int i = 0; i < 2; ++i) answer_once(*model, 1);
  EXPECT_EQ(health("/health/ready"), "200 ready");
  answer_once(*model, 1);
  while (model->engine.stats().failed_in_row < 3) std::this_thread::yield();
  EXPECT_EQ(health("/health/ready"), "503 failing: the last 3 steps of \"a\" have failed");
  EXPECT_EQ(health("/health/live"), "200 live");
  fails = false;
  answer_once(*model, 1);
  while (model->engine.stats().failed_in_row > 0) std::this_thread::yield();
  EXPECT_EQ(health("/health/ready"), "200 ready");
}

TEST_F(HealthApi, RequestsAreAskedForAgainSomeTimeAfterAFailure) {
  const CapturedLog log;
  Router patient(workers_, [](const HttpRequest&) { return true; });
  add_health_api(patient, models_, phase_, {.failed_in_row = 0, .failing_seconds = 0});
  LoadOptions load;
  load.executor.hidden_state_probe = [&](int, std::span<const float>) {
    throw Error(ErrorCode::kExhausted, "no memory for scratch");
  };
  const auto model = serve("a", load);
  answer_once(*model, 1);
  while (model->engine.stats().failed_in_row == 0) std::this_thread::yield();
  const auto exchange = std::make_shared<FakeExchange>(request_of("GET", "/health/ready"));
  patient.handle(exchange);
  EXPECT_EQ(exchange->await().status, 200);
}

TEST_F(HealthApi, AStepThatHangsIsNoLife) {
  Router strict(workers_, [](const HttpRequest&) { return true; });
  add_health_api(strict, models_, phase_, {.step_seconds = 0.01});
  std::promise<void> end;
  LoadOptions load;
  load.executor.hidden_state_probe = [ended = end.get_future().share()](
                                         int, std::span<const float>) { ended.wait(); };
  const auto model = serve("a", load);
  GenerationRequest request;
  request.prompt = {300};
  request.max_tokens = 1;
  auto stream = model->engine.submit(std::move(request));
  while (model->engine.stats().step_seconds < 0.02) std::this_thread::yield();
  for (const char* path : {"/health/live", "/health/ready"}) {
    const auto exchange = std::make_shared<FakeExchange>(request_of("GET", path));
    strict.handle(exchange);
    EXPECT_THAT(exchange->await().body,
                testing::StartsWith(R"({"status":"unhealthy","reason":"a step of \"a\" takes )"));
  }
  EXPECT_EQ(health("/health/live"), "200 live");
  end.set_value();
  while (stream.next()) {
  }
}

TEST_F(HealthApi, NeedsNoKeyAndIsNotCached) {
  Router strict(workers_, [](const HttpRequest&) { return false; });
  add_health_api(strict, models_, phase_);
  const auto exchange = std::make_shared<FakeExchange>(request_of("GET", "/health/live"));
  strict.handle(exchange);
  EXPECT_EQ(exchange->await().status, 200);
  EXPECT_EQ(exchange->await().headers.find("cache-control"), "no-store");
}

}  // namespace
}  // namespace trtmc
