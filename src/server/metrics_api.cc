#include "server/metrics_api.h"

#include <utility>

namespace trtmc {

void add_metrics_api(Router& router, const Metrics& metrics, const ModelCatalogue& models,
                     std::function<int()> open_connections) {
  const auto answer = [&metrics, &models, count = std::move(open_connections)](const auto& x) {
    x->respond(text_response(200, "text/plain; version=0.0.4; charset=utf-8",
                             metrics.text(models, count())));
  };
  router.add({"GET", "/metrics", answer, Route::On::kServer, /*needs_key=*/false});
}

}  // namespace trtmc
