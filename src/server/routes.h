// All routes that a server has.
#pragma once

#include <atomic>
#include <functional>

#include "server/health_api.h"
#include "server/metrics.h"
#include "server/server_context.h"

namespace trtmc {

// What those need who look after the server. Everything outlives every request.
struct Operations {
  const std::atomic<ServerPhase>& phase;
  const Metrics& metrics;
  std::function<int()> open_connections;  // From any thread.
};

void add_routes(Router& router, const ServerContext& context, const Operations& operations);

}  // namespace trtmc
