// POST /v1/completions, in OpenAI's dialect.
#pragma once

#include "server/server_context.h"

namespace trtmc {

void add_openai_completions(Router& router, const ServerContext& context);

}  // namespace trtmc
