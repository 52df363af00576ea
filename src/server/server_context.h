// What the routes work with. Everything outlives every request.
#pragma once

#include "server/event_pump.h"
#include "server/model_catalogue.h"
#include "server/router.h"

namespace trtmc {

struct ServerContext {
  ModelCatalogue& models;
  EventPump& pump;
};

}  // namespace trtmc
