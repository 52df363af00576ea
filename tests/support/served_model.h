// A server without sockets in which a model answers: the embedded one, or a script in its place.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "tests/support/embedded_bundle.h"
#include "tests/support/fake_exchange.h"
#include "tests/support/fake_executor.h"

namespace trtmc {

// Counts what it is told.
class CountingObserver final : public GenerationObserver {
 public:
  void first_token(double) override {}
  void next_token(double) override {}
  void ended(FinishReason) override { ++num_answers; }
  void request_ended(double) override { ++num_requests; }

  std::atomic<int> num_answers = 0, num_requests = 0;
};

class TestServer {
 public:
  // With one model, "tiny".
  explicit TestServer(std::shared_ptr<ServedModel> model) : model_(model) {
    models_.put(std::move(model));
    const ServerContext context{.models = models_, .pump = pump_};
    add_openai_chat(router_, context);
    add_openai_completions(router_, context);
  }

  const ServedModel& model() const { return *model_; }
  const EventPump& pump() const { return pump_; }

  std::shared_ptr<FakeExchange> post(std::string_view path, std::string body) {
    auto exchange = std::make_shared<FakeExchange>("POST", std::string(path), std::move(body));
    router_.handle(exchange);
    return exchange;
  }
  std::shared_ptr<FakeExchange> chat(std::string body) {
    return post("/v1/chat/completions", std::move(body));
  }
  std::shared_ptr<FakeExchange> complete(std::string body) {
    return post("/v1/completions", std::move(body));
  }

 private:
  std::shared_ptr<ServedModel> model_;
  ModelCatalogue models_;
  EventPump pump_;
  Workers workers_{2, 64};
  Router router_{workers_, [](const HttpRequest&) { return true; }};
};

inline LoadOptions test_load_options() {
  LoadOptions options;
  options.executor.num_threads = 1;
  return options;
}

// With the embedded model, once a process.
inline TestServer& embedded_server() {
  static TestServer server(std::make_shared<ServedModel>("tiny", embedded_bundle(),
                                                         test_load_options(), EngineOptions{}));
  return server;
}

// Tokens and template of the embedded model, and answers from a script: token after token to
// whatever prompt. For one request at a time.
class ScriptedServer {
 public:
  ScriptedServer()
      : server_(std::make_shared<ServedModel>("tiny", embedded_bundle(), test_load_options(),
                                              EngineOptions{}, observer_, &executor_)) {}

  TestServer& server() { return server_; }
  const Tokenizer& tokenizer() const { return server_.model().loaded.tokenizer(); }

  // The next answers are this text and the end of the turn.
  void answer_with(std::string_view text) {
    std::vector<TokenId> ids = tokenizer().encode(text);
    ids.push_back(end_of_turn());
    answer_with(std::move(ids));
  }
  void answer_with(std::vector<TokenId> ids) {
    script_ = std::move(ids);
    prompt_size_ = 0;
  }
  TokenId end_of_turn() const { return *tokenizer().find("<|im_end|>"); }

  // Of the tokens that are not the script's, which have 30.
  void set_other_logits(float logit) { other_logit_ = logit; }

  FakeExecutor& executor() { return executor_; }
  const CountingObserver& observer() const { return *observer_; }

 private:
  static constexpr int kVocabulary = 10240;
  static constexpr Limits kLimits = {
      .num_blocks = 256, .block_size = 16, .max_tokens_per_step = 512, .max_sequences_per_step = 8};

  std::vector<float> logits(std::span<const TokenId> ids) {
    // The first logits that are asked for are those behind the prompt.
    size_t none = 0;
    prompt_size_.compare_exchange_strong(none, ids.size());
    std::vector<float> result(kVocabulary, other_logit_);
    const size_t next = ids.size() - prompt_size_;
    if (next < script_.size()) result[static_cast<size_t>(script_[next])] = 30;
    return result;
  }

  std::vector<TokenId> script_;
  float other_logit_ = 0;
  std::atomic<size_t> prompt_size_ = 0;
  FakeExecutor executor_{kVocabulary, kLimits,
                         [this](std::span<const TokenId> ids) { return logits(ids); }};
  const std::shared_ptr<CountingObserver> observer_ = std::make_shared<CountingObserver>();
  TestServer server_;  // Uses the executor, so it dies first.
};

}  // namespace trtmc
