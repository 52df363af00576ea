#include "server/health_api.h"

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
