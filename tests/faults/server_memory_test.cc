// Requests that find no memory, wherever on the server's way with them that is: routes, workers,
// engine, pump, writer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/log.h"
#include "server/patient_thread.h"
#include "tests/faults/failing_memory.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using Which = FailingMemory::Which;

struct Case {
  const char* name;
  const char* path;
  const char* body;
  bool is_stream;
  int64_t stride;  // The first allocation to fail, the one so far behind it, …
};

// TRTMC_EVERY_ALLOCATION is set where there is time for each of them.
bool tries_all() { return std::getenv("TRTMC_EVERY_ALLOCATION") != nullptr; }

constexpr Case kCases[] = {
    {"Whole", "/v1/completions",
     R"({"prompt": [300, 301, 302], "max_tokens": 4, "logprobs": 2, "echo": true})", false, 13},
    {"Stream", "/v1/completions",
     R"({"prompt": [300, 301, 302], "max_tokens": 4, "logprobs": 2, "stream": true})", true, 13},
    {"Chat", "/v1/chat/completions",
     R"({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "stream": true})",
     true, 211},
};

class ServerMemory : public testing::TestWithParam<Case> {
 protected:
  ServerMemory() {
    set_log_sink([](LogLevel, std::string_view) {});
    scripted_.answer_with({700});
  }
  ~ServerMemory() override { set_log_sink({}); }

  std::shared_ptr<FakeExchange> ask() {
    return scripted_.server().post(GetParam().path, GetParam().body);
  }

  bool is_whole(FakeExchange& exchange) const {
    const HttpResponse response = exchange.await();
    if (response.status != 200 || exchange.lacked_memory()) return false;
    return !GetParam().is_stream || response.body.ends_with("data: [DONE]\n\n");
  }

  void expect_said(FakeExchange& exchange) const {
    if (exchange.lacked_memory()) return;  // Said by the connection.
    const HttpResponse response = exchange.await();
    const bool is_event = response.status == 200 && GetParam().is_stream;
    EXPECT_TRUE(is_event || response.status == 503) << response.status << response.body;
    EXPECT_NE(response.body.find(R"("message":"out of memory","type":"server_error")"),
              std::string::npos)
        << response.body;
  }

  void await_nothing_left() {
    const TestServer& server = scripted_.server();
    const auto is_left = [&] {
      const EngineStats stats = server.model().engine.stats();
      return server.pump().num_tasks() + stats.kv_blocks_used + stats.queued_requests > 0;
    };
    for (int i = 0; i < 10'000 && is_left(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    EXPECT_FALSE(is_left());
    // Each request had one answer.
    EXPECT_EQ(scripted_.observer().num_answers, scripted_.observer().num_requests);
  }

  // False if there was memory for all.
  bool try_without(int64_t first, Which which) {
    bool has_failed = false;
    {
      const FailingMemory memory(first, which);
      const auto exchange = ask_without();
      const SparedThread spared;
      if (!exchange) return true;
      if (!is_whole(*exchange)) expect_said(*exchange);
      await_nothing_left();
      has_failed = memory.has_failed();
    }
    EXPECT_TRUE(scripted_.server().model().engine.healthy());
    return has_failed;
  }

  // None if there is no memory for a request to come at all.
  std::shared_ptr<FakeExchange> ask_without() {
    try {
      return ask();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  ScriptedServer scripted_;
};

TEST_P(ServerMemory, ARequestThatFindsNoneIsToldSoAndTheNextOneIsAnswered) {
  const int64_t stride = tries_all() ? 1 : GetParam().stride;
  for (const Which which : {Which::kOne, Which::kAllFrom}) {
    // Half a stride apart, so that the two meet different ones.
    int64_t first = which == Which::kOne ? 0 : stride / 2;
    for (; try_without(first, which) && !HasFailure(); first += stride) {
      if (first % 4 == 0) {
        EXPECT_TRUE(is_whole(*ask()));
      }
    }
    EXPECT_GT(first, 300) << "few allocations were met";
    EXPECT_TRUE(is_whole(*ask()));
  }
}

INSTANTIATE_TEST_SUITE_P(, ServerMemory, testing::ValuesIn(kCases),
                         [](const auto& which) { return std::string(which.param.name); });

TEST(PatientThread, WaitsForWhatOthersAreRefused) {
  const PatientThread patient;
  std::string text;
  {
    const FailingMemory memory(0, Which::kOne);
    text = std::string(100, 'x');  // From the reserve.
    EXPECT_TRUE(memory.has_failed());
  }
  EXPECT_EQ(text.size(), 100u);
}

TEST(PatientThread, HasItsLimit) {
  PatientThread patient(std::chrono::milliseconds(5));
  const FailingMemory memory(0, Which::kAllFrom);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(std::string(100, 'x'), std::bad_alloc);
  }
}

TEST(PatientThread, IsTheOnlyOne) {
  const PatientThread patient;
  bool was_refused = false;
  std::thread([&] {
    const FailingMemory memory(0, Which::kOne);
    try {
      const std::string text(100, 'x');
    } catch (const std::bad_alloc&) {
      was_refused = true;
    }
  }).join();
  EXPECT_TRUE(was_refused);
}

}  // namespace
}  // namespace trtmc
