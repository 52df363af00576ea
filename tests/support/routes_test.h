// What the tests of routes share: a server without connections.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/router.h"
#include "server/server_context.h"
#include "tests/support/embedded_bundle.h"
#include "tests/support/fake_exchange.h"

namespace trtmc {

class RoutesTest : public testing::Test {
 protected:
  std::shared_ptr<ServedModel> serve(std::string name, const LoadOptions& load = {}) {
    auto model =
        std::make_shared<ServedModel>(std::move(name), embedded_bundle(), load, EngineOptions{});
    models_.put(model);
    return model;
  }

  HttpResponse answer(std::string method, std::string path, std::string body = {}) {
    const auto exchange = std::make_shared<FakeExchange>(
        request_of(std::move(method), std::move(path), std::move(body)));
    router_.handle(exchange);
    return exchange->await();
  }
  // The body of an answer with that status.
  Json json_of(int status, const HttpResponse& response) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(response.headers.find("content-type"), "application/json");
    return Json::parse(response.body);
  }
  Json get(std::string path) { return json_of(200, answer("GET", std::move(path))); }
  Json post(std::string path, std::string body) {
    return json_of(200, answer("POST", std::move(path), std::move(body)));
  }
  // "param: message" of the error that a request is refused with.
  std::string refusal(int status, std::string path, std::string body) {
    const Json json = json_of(status, answer("POST", std::move(path), std::move(body)));
    const Json* const error = json.find("error");
    if (error == nullptr) return json.dump();
    const Json* const param = error->find("param");
    return (param->string() ? *param->string() : "-") + ": " + *error->find("message")->string();
  }

  Workers workers_{1, 4};
  EventPump pump_;
  ModelCatalogue models_;
  Router router_{workers_, [](const HttpRequest&) { return true; }};
};

// An engine of a model that was loaded so loses its device at its first step.
inline LoadOptions losing_its_device() {
  LoadOptions options;
  options.executor.hidden_state_probe = [](int, std::span<const float>) {
    throw std::runtime_error("the device is gone");
  };
  return options;
}

// Has the model answer "Once upon a time" with `count` tokens, and waits for them.
inline void answer_once(ServedModel& model, int count) {
  GenerationRequest request;
  request.prompt = {1411, 1369, 257, 892};
  request.max_tokens = count;
  request.ignore_eos = true;
  TokenStream stream = model.engine.submit(std::move(request));
  while (stream.next()) {
  }
}

}  // namespace trtmc
