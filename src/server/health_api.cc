#include "server/health_api.h"

#include <string>
#include <utility>

namespace trtmc {
namespace {

// What a probe is told; without a reason all is well.
struct Health {
  const char* status;
  std::string reason;
};

Health of_engines(const ModelCatalogue& models) {
  for (const auto& model : models.all()) {
    if (model->engine.healthy()) continue;
    return {"unhealthy", "the engine of " + Json(model->name).dump() + " has lost its device"};
  }
  return {"live", ""};
}

Health of_start(ServerPhase phase) {
  if (phase == ServerPhase::kStarting) return {"starting", "the models are being loaded"};
  return {"started", ""};
}

Health of_readiness(const ModelCatalogue& models, ServerPhase phase) {
  if (Health start = of_start(phase); !start.reason.empty()) return start;
  if (phase == ServerPhase::kDraining) {
    return {"draining", "the server ends as soon as its answers have"};
  }
  if (Health engines = of_engines(models); !engines.reason.empty()) return engines;
  return {"ready", ""};
}

void answer(Exchange& exchange, Health health) {
  const bool is_well = health.reason.empty();
  Json json;
  json.set("status", health.status);
  if (!is_well) json.set("reason", std::move(health.reason));
  HttpResponse response = json_response(is_well ? 200 : 503, json);
  response.headers.add("Cache-Control", "no-store");
  exchange.respond(std::move(response));
}

}  // namespace

bool is_probe(std::string_view path) {
  return path == "/health" || path.starts_with("/health/") || path == "/metrics";
}

void add_health_api(Router& router, const ModelCatalogue& models,
                    const std::atomic<ServerPhase>& phase) {
  const auto add = [&](const char* path, auto health) {
    router.add({"GET", path, [health](const auto& exchange) { answer(*exchange, health()); },
                Route::On::kServer, /*needs_key=*/false});
  };
  const auto ready = [&models, &phase] { return of_readiness(models, phase); };
  add("/health", ready);
  add("/health/ready", ready);
  add("/health/live", [&models] { return of_engines(models); });
  add("/health/startup", [&phase] { return of_start(phase); });
}

}  // namespace trtmc
