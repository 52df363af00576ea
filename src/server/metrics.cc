#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/engine_metrics.h"

namespace trtmc {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// In seconds, each about two and a half times the one before, wider apart at the ends.
const Buckets kFirstTokenBuckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                    1,     2.5,   5,    10,    25,   50,  100,  250};
const Buckets kNextTokenBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                   0.15,  0.2,    0.3,   0.5,  0.75,  1,    2.5,   5};
const Buckets kRequestBuckets = {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 600};

// Clients name methods as they like; what they make up is one.
std::string known_method(std::string_view method) {
  constexpr std::array<std::string_view, 7> kKnown = {"GET",    "HEAD",    "POST", "PUT",
                                                      "DELETE", "OPTIONS", "PATCH"};
  const bool is_known = std::find(kKnown.begin(), kKnown.end(), method) != kKnown.end();
  return is_known ? std::string(method) : "other";
}

}  // namespace

struct Metrics::Impl {
  Impl(std::string_view version, std::string_view build_id) {
    prometheus::BuildGauge()
        .Name("trtmc_build_info")
        .Help("1; its labels say what the program was built from")
        .Register(registry)
        .Add({{"version", std::string(version)}, {"commit", std::string(build_id)}})
        .Set(1);
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("trtmc_http_requests_total")
          .Help("HTTP requests that are over, by route and status; status 0: not answered")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& durations =
      prometheus::BuildHistogram()
          .Name("trtmc_http_request_duration_seconds")
          .Help("From a request's headers to the last byte of its answer")
          .Register(registry);
  prometheus::Gauge& in_flight = prometheus::BuildGauge()
                                     .Name("trtmc_http_requests_in_flight")
                                     .Help("HTTP requests that are being answered")
                                     .Register(registry)
                                     .Add({});
  prometheus::Family<prometheus::Histogram>& first_tokens =
      prometheus::BuildHistogram()
          .Name("trtmc_time_to_first_token_seconds")
          .Help("From a request's submission to the engine to its first token")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& next_tokens =
      prometheus::BuildHistogram()
          .Name("trtmc_inter_token_seconds")
          .Help("Between two tokens of one answer")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& generations =
      prometheus::BuildHistogram()
          .Name("trtmc_generation_seconds")
          .Help("From a request's submission to the engine to the end of all its answers")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& answers =
      prometheus::BuildCounter()
          .Name("trtmc_answers_total")
          .Help("Answers that have ended, by the reason: stop, length, cancelled, error")
          .Register(registry);
};

namespace {

// One model's part.
class ModelObserver final : public GenerationObserver {
 public:
  // `owner` owns the families.
  ModelObserver(std::shared_ptr<void> owner, Metrics::Impl& metrics, const std::string& model)
      : owner_(std::move(owner)),
        first_tokens_(metrics.first_tokens.Add({{"model", model}}, kFirstTokenBuckets)),
        next_tokens_(metrics.next_tokens.Add({{"model", model}}, kNextTokenBuckets)),
        generations_(metrics.generations.Add({{"model", model}}, kRequestBuckets)) {
    for (size_t i = 0; i < answers_.size(); ++i) {
      const std::string reason(to_string(static_cast<FinishReason>(i)));
      answers_[i] = &metrics.answers.Add({{"model", model}, {"reason", reason}});
    }
  }

  void first_token(double seconds) override { first_tokens_.Observe(seconds); }
  void next_token(double seconds) override { next_tokens_.Observe(seconds); }
  void ended(FinishReason reason) override { answers_[static_cast<size_t>(reason)]->Increment(); }
  void request_ended(double seconds) override { generations_.Observe(seconds); }

 private:
  static constexpr size_t kNumReasons = static_cast<size_t>(FinishReason::kError) + 1;

  const std::shared_ptr<void> owner_;
  prometheus::Histogram &first_tokens_, &next_tokens_, &generations_;
  std::array<prometheus::Counter*, kNumReasons> answers_{};
};

}  // namespace

Metrics::Metrics(std::string_view version, std::string_view build_id)
    : impl_(std::make_shared<Impl>(version, build_id)) {}

Metrics::~Metrics() = default;

std::shared_ptr<Exchange> Metrics::in_flight(std::shared_ptr<Exchange> exchange) {
  struct Guard {
    Guard(std::shared_ptr<Impl> impl, std::shared_ptr<Exchange> of)
        : metrics(std::move(impl)), exchange(std::move(of)) {
      metrics->in_flight.Increment();
    }
    ~Guard() { metrics->in_flight.Decrement(); }
    Guard(const Guard&) = delete;

    const std::shared_ptr<Impl> metrics;
    const std::shared_ptr<Exchange> exchange;
  };
  const auto guard = std::make_shared<Guard>(impl_, std::move(exchange));
  return {guard, guard->exchange.get()};
}

void Metrics::count_request(std::string_view method, std::string_view route, int status,
                            double seconds) {
  const std::string name(route);
  impl_->requests
      .Add({{"method", known_method(method)}, {"route", name}, {"status", std::to_string(status)}})
      .Increment();
  impl_->durations.Add({{"route", name}}, kRequestBuckets).Observe(seconds);
}

std::shared_ptr<GenerationObserver> Metrics::observer_of(const std::string& model) {
  return std::make_shared<ModelObserver>(impl_, *impl_, model);
}

std::string Metrics::text(const ModelCatalogue& models, int open_connections) const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  prometheus::MetricFamily connections{
      "trtmc_http_connections", "Open connections", prometheus::MetricType::Gauge, {{}}};
  connections.metric.front().gauge.value = open_connections;
  families.push_back(std::move(connections));
  append_engine_metrics(models, families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace trtmc
