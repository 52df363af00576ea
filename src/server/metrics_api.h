// GET /metrics, for Prometheus; no key is needed.
#pragma once

#include <functional>

#include "server/metrics.h"
#include "server/router.h"

namespace trtmc {

// `open_connections` says how many there are; it may be called on any thread.
void add_metrics_api(Router& router, const Metrics& metrics, const ModelCatalogue& models,
                     std::function<int()> open_connections);

}  // namespace trtmc
