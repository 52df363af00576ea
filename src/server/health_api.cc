#include "server/health_api.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace trtmc {
namespace {

// What a probe is told; without a reason all is well.
struct Health {
  const char* status;
  std::string reason;
};

Health of_engines(const ModelCatalogue& models, const HealthLimits& limits) {
  for (const auto& model : models.all()) {
    const std::string name = Json(model->name).dump();
    if (!model->engine.healthy()) {
      return {"unhealthy", fmt::format("the engine of {} has lost its device", name)};
    }
    const double seconds = model->engine.stats().step_seconds;
    if (seconds > limits.step_seconds) {
      return {"unhealthy", fmt::format("a step of {} takes {:.0f} s so far", name, seconds)};
    }
  }
  return {"live", ""};
}

// A step that finds no memory says nothing of the next one, but many do.
Health of_steps(const ModelCatalogue& models, const HealthLimits& limits) {
  for (const auto& model : models.all()) {
    const EngineStats stats = model->engine.stats();
    if (stats.failed_in_row <= limits.failed_in_row) continue;
    if (stats.seconds_since_failure > limits.failing_seconds) continue;
    return {"failing", fmt::format("the last {} steps of {} have failed", stats.failed_in_row,
                                   Json(model->name).dump())};
  }
  return {"well", ""};
}

Health of_start(ServerPhase phase) {
  if (phase == ServerPhase::kStarting) return {"starting", "the models are being loaded"};
  return {"started", ""};
}

Health of_readiness(const ModelCatalogue& models, ServerPhase phase, const HealthLimits& limits) {
  if (Health start = of_start(phase); !start.reason.empty()) return start;
  if (phase == ServerPhase::kDraining) {
    return {"draining", "the server ends as soon as its answers have"};
  }
  if (Health engines = of_engines(models, limits); !engines.reason.empty()) return engines;
  if (Health steps = of_steps(models, limits); !steps.reason.empty()) return steps;
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
                    const std::atomic<ServerPhase>& phase, const HealthLimits& limits) {
  const auto add = [&](const char* path, auto health) {
    router.add({"GET", path, [health](const auto& exchange) { answer(*exchange, health()); },
                Route::On::kServer, /*needs_key=*/false});
  };
  const auto ready = [&models, &phase, limits] { return of_readiness(models, phase, limits); };
  add("/health", ready);
  add("/health/ready", ready);
  add("/health/live", [&models, limits] { return of_engines(models, limits); });
  add("/health/startup", [&phase] { return of_start(phase); });
}

}  // namespace trtmc
