// What a server counts and how long things take, in Prometheus' text format. docs/metrics.md names
// it all. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/exchange.h"
#include "server/generation_observer.h"
#include "server/model_catalogue.h"

namespace trtmc {

class Metrics {
 public:
  // What the program was built from: "0.1.0", "0123456789ab".
  Metrics(std::string_view version, std::string_view build_id);
  ~Metrics();
  Metrics(const Metrics&) = delete;

  // The same exchange; its request is in flight until nobody holds what this returns.
  std::shared_ptr<Exchange> in_flight(std::shared_ptr<Exchange> exchange);

  // A request is over. `route`: the pattern of its route, of which there are few, or "other".
  void count_request(std::string_view method, std::string_view route, int status, double seconds);

  // Of the model that is served by that name, today's and those that come after it.
  std::shared_ptr<GenerationObserver> observer_of(const std::string& model);

  // All of it, with what the engines of `models` do now.
  std::string text(const ModelCatalogue& models, int open_connections) const;

  struct Impl;  // Its own.

 private:
  std::shared_ptr<Impl> impl_;  // Shared with observers and exchanges, which may outlive it.
};

}  // namespace trtmc
