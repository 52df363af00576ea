#include "server/router.h"

#include <gmock/gmock.h>

#include "tests/support/captured_log.h"
#include "tests/support/routes_test.h"

namespace trtmc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class RouterTest : public RoutesTest {
 protected:
  RouterTest() {
    const auto say_path = [](const auto& exchange) {
      exchange->respond(text_response(200, "text/plain", exchange->request().path));
    };
    router_.add({"GET", "/open", say_path, Route::On::kServer, /*needs_key=*/false});
    router_.add({"GET", "/things", say_path});
    router_.add({"POST", "/things", say_path});
    router_.add({"GET", "/things/*", say_path});
    router_.add({"GET", "/fails", [](const auto&) {
                   throw FieldError(ErrorCode::kUnsupported, "colour", "red is out");
                 }});
    router_.add({"GET", "/breaks", [](const auto&) { throw std::runtime_error("a bug"); }});
  }
};

TEST_F(RouterTest, PathsLeadToTheirHandlers) {
  EXPECT_EQ(answer("GET", "/things").body, "/things");
  EXPECT_EQ(answer("HEAD", "/things").status, 200);
  EXPECT_EQ(answer("GET", "/things/a/b").body, "/things/a/b");
  EXPECT_EQ(answer("GET", "/thing").status, 404);
  EXPECT_EQ(answer("GET", "/things2").status, 404);
}

TEST_F(RouterTest, OtherMethodsAreToldWhichThereAre) {
  const HttpResponse response = answer("DELETE", "/things");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.find("allow"), "GET, POST");
}

TEST_F(RouterTest, ThrownErrorsAreAnswers) {
  EXPECT_EQ(answer("GET", "/fails").body,
            R"({"error":{"message":"colour: red is out","type":"invalid_request_error",)"
            R"("param":"colour","code":null}})");
}

// Its text may have what is not for clients.
TEST_F(RouterTest, WhatIsTheServersFaultIsInTheLogAlone) {
  const CapturedLog log;
  const HttpResponse response = answer("GET", "/breaks");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body,
            R"({"error":{"message":"the server failed; its log says why, for request-1",)"
            R"("type":"server_error","param":null,"code":null}})");
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(StartsWith("request-1: "), HasSubstr("a bug"))));
}

TEST_F(RouterTest, OnlyRoutesWithoutAKeyAnswerWhileItIsClosed) {
  bool is_closed = true;
  router_.set_closed([&] { return is_closed; });
  EXPECT_EQ(answer("GET", "/open").status, 200);
  const HttpResponse refused = answer("GET", "/things");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.find("retry-after"), "1");
  is_closed = false;
  EXPECT_EQ(answer("GET", "/things").status, 200);
}

TEST_F(RouterTest, NothingIsDoneForAClientThatHasGone) {
  int calls = 0;
  router_.add({"GET", "/work", [&](const auto&) { ++calls; }});
  router_.add({"GET", "/end", [](const auto& exchange) { exchange->respond({}); }});
  const auto gone = std::make_shared<FakeExchange>("GET", "/work");
  gone->leave();
  router_.handle(gone);
  // Workers take what waits in its order, and one of them has had the time by then.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answer("GET", "/end").status, 200);
  EXPECT_EQ(calls, 0);
}

TEST_F(RouterTest, KnowsByTheHeadWhetherAHandlerSeesARequest) {
  EXPECT_TRUE(router_.reaches_handler(request_of("POST", "/things")));
  EXPECT_FALSE(router_.reaches_handler(request_of("PUT", "/things")));
  EXPECT_FALSE(router_.reaches_handler(request_of("POST", "/nothing")));
  Router strict(workers_, [](const HttpRequest&) { return false; });
  strict.add({"POST", "/things", [](const auto&) {}});
  EXPECT_FALSE(strict.reaches_handler(request_of("POST", "/things")));
  router_.set_closed([] { return true; });
  EXPECT_FALSE(router_.reaches_handler(request_of("POST", "/things")));
  EXPECT_TRUE(router_.reaches_handler(request_of("GET", "/open")));
}

TEST_F(RouterTest, WithoutAGoodKeyNothingIsSaid) {
  Router strict(workers_, [](const HttpRequest&) { return false; });
  strict.add({"GET", "/things", [](const auto&) { ADD_FAILURE() << "it was let in"; }});
  const auto exchange = std::make_shared<FakeExchange>("GET", "/things");
  strict.handle(exchange);
  EXPECT_EQ(exchange->response().status, 401);
  EXPECT_EQ(exchange->response().headers.find("www-authenticate"), "Bearer");
}

}  // namespace
}  // namespace trtmc
