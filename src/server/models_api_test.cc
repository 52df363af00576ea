#include "server/models_api.h"

#include "tests/support/routes_test.h"

namespace trtmc {
namespace {

class ModelsApi : public RoutesTest {
 protected:
  ModelsApi() { add_models_api(router_, {models_, pump_}); }
};

TEST_F(ModelsApi, ListsWhatIsServedInTheOrderInWhichItWasAdded) {
  serve("b");
  serve("a/with a space");
  const Json list = get("/v1/models");
  EXPECT_EQ(*list.find("object")->string(), "list");
  const Json::Array& data = *list.find("data")->array();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(*data[0].find("id")->string(), "b");
  EXPECT_EQ(*data[1].find("id")->string(), "a/with a space");
  EXPECT_EQ(*data[0].find("object")->string(), "model");
  EXPECT_EQ(*data[0].find("owned_by")->string(), "trtmc");
  EXPECT_GT(*data[0].find("created")->integer(), 1'700'000'000);
  EXPECT_EQ(*data[0].find("max_model_len")->integer(), 4096);
}

TEST_F(ModelsApi, ListsNothingBeforeAModelIsThere) {
  EXPECT_EQ(answer("GET", "/v1/models").body, R"({"object":"list","data":[]})");
}

TEST_F(ModelsApi, ShowsOneByItsEncodedOrPlainName) {
  serve("a/with a space");
  for (const char* path : {"/v1/models/a%2Fwith%20a%20space", "/v1/models/a/with%20a%20space"}) {
    EXPECT_EQ(*get(path).find("id")->string(), "a/with a space");
  }
}

TEST_F(ModelsApi, AnUnknownNameIsNotFound) {
  serve("a");
  const HttpResponse response = answer("GET", "/v1/models/b");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body,
            R"({"error":{"message":"model: \"b\" is not served, only \"a\"",)"
            R"("type":"invalid_request_error","param":"model","code":"model_not_found"}})");
  EXPECT_EQ(answer("GET", "/v1/models/%4").status, 400);
  // An empty name is a name here, though a request for an answer may leave it out.
  EXPECT_EQ(answer("GET", "/v1/models/").status, 404);
}

TEST_F(ModelsApi, OtherMethodsAreRefused) {
  const HttpResponse response = answer("POST", "/v1/models");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.find("allow"), "GET");
}

}  // namespace
}  // namespace trtmc
