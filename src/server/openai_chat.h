// POST /v1/chat/completions, in OpenAI's dialect.
#pragma once

#include "server/server_context.h"

namespace trtmc {

void add_openai_chat(Router& router, const ServerContext& context);

}  // namespace trtmc
