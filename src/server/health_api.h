// GET /health/live, /health/ready, /health/startup and /health: what an orchestrator asks. 200, or
// 503 and why not; no key is needed.
#pragma once

#include <atomic>
#include <string_view>

#include "server/model_catalogue.h"
#include "server/router.h"

namespace trtmc {

// Where a server is between its start and its end.
enum class ServerPhase { kStarting, kServing, kDraining };

// Whether a request for `path` comes from an orchestrator or a collector of metrics, every few
// seconds and for ever: it is answered even where there are too many connections.
bool is_probe(std::string_view path);

// What an engine may do that is well.
struct HealthLimits {
  double step_seconds = 600;    // A step, however large the model: beyond it the device hangs.
  int failed_in_row = 2;        // Steps. Where more have failed nothing is asked for until
  double failing_seconds = 10;  // so long after the last of them.
};

// Live: no engine has lost its device or hangs in a step, from which only a new process helps.
// Started up: the models have been loaded. Ready: started up, live, not draining, and no engine's
// steps fail one after the other; /health says the same. Both references must outlive the router's
// requests.
void add_health_api(Router& router, const ModelCatalogue& models,
                    const std::atomic<ServerPhase>& phase, const HealthLimits& limits = {});

}  // namespace trtmc
