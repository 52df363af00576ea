// What the engines do, as Prometheus' families: looked at when somebody asks.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/model_catalogue.h"

namespace trtmc {

void append_engine_metrics(const ModelCatalogue& models,
                           std::vector<prometheus::MetricFamily>& families);

}  // namespace trtmc
