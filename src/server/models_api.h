// GET /v1/models and /v1/models/{id}: what the server has.
#pragma once

#include "server/server_context.h"

namespace trtmc {

void add_models_api(Router& router, const ServerContext& context);

}  // namespace trtmc
