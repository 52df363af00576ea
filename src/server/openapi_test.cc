#include "server/openapi.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "server/routes.h"
#include "tests/support/routes_test.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

class OpenApi : public RoutesTest {
 protected:
  OpenApi() {
    add_routes(router_, {models_, pump_}, {phase_, metrics_, [] { return 0; }});
  }

  std::atomic<ServerPhase> phase_ = ServerPhase::kServing;
  Metrics metrics_{"1.2.3", "abc"};
  const Json document_ = Json::parse(kOpenApiDocument);
};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

TEST_F(OpenApi, DescribesEveryRouteAndNoOther) {
  std::set<std::string> described, served;
  for (const auto& [path, operations] : *document_.find("paths")->object()) {
    for (const auto& [method, operation] : *operations.object()) {
      described.insert(upper(method) + " " + path);
    }
  }
  for (const Route& route : router_.routes()) {
    std::string path = route.path;
    if (path.ends_with("/*")) path.replace(path.size() - 1, 1, "{model}");
    EXPECT_TRUE(served.insert(route.method + " " + path).second) << "twice: " << path;
  }
  EXPECT_EQ(described, served);
}

// Those that need no key say so, by an empty list.
TEST_F(OpenApi, SaysWhichRoutesNeedAKey) {
  for (const Route& route : router_.routes()) {
    std::string path = route.path;
    if (path.ends_with("/*")) path.replace(path.size() - 1, 1, "{model}");
    const Json* const operation =
        document_.find("paths")->find(path)->find(route.method == "GET" ? "get" : "post");
    ASSERT_NE(operation, nullptr) << path;
    EXPECT_EQ(operation->find("security") == nullptr, route.needs_key) << path;
  }
}

void collect(const Json& json, std::vector<std::string>& references) {
  if (const Json::Array* const array = json.array()) {
    for (const Json& element : *array) collect(element, references);
  }
  if (json.object() == nullptr) return;
  for (const auto& [key, value] : *json.object()) {
    if (key == "$ref") references.push_back(*value.string());
    collect(value, references);
  }
}

TEST_F(OpenApi, EveryReferenceLeadsSomewhereAndEverySchemaIsUsed) {
  std::vector<std::string> references;
  collect(document_, references);
  std::set<std::string> used;
  for (const std::string& reference : references) {
    const Json* place = &document_;
    for (size_t at = 2; place != nullptr && at < reference.size();) {
      const size_t end = std::min(reference.find('/', at), reference.size());
      place = place->find(reference.substr(at, end - at));
      at = end + 1;
    }
    EXPECT_NE(place, nullptr) << reference;
    used.insert(reference);
  }
  for (const char* kind : {"schemas", "responses"}) {
    for (const auto& [name, schema] : *document_.find("components")->find(kind)->object()) {
      // Events of a stream are no body of their own, so that only words lead there.
      if (name == "ChatCompletionChunk") continue;
      EXPECT_TRUE(used.contains(std::string("#/components/") + kind + "/" + name)) << name;
    }
  }
}

TEST_F(OpenApi, IsServedWithTheProgramsVersion) {
  const Json served = get("/openapi.json");
  EXPECT_EQ(*served.find("openapi")->string(), "3.1.0");
  EXPECT_EQ(*served.find("info")->find("version")->string(), TRTMC_VERSION_STRING);
}

}  // namespace
}  // namespace trtmc
