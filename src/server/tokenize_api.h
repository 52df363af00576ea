// POST /tokenize, /detokenize and /render: from text or a conversation to ids, back again, and the
// exact prompt that a conversation becomes. Field names are those of vLLM's server.
#pragma once

#include "server/server_context.h"

namespace trtmc {

void add_tokenize_api(Router& router, const ServerContext& context);

}  // namespace trtmc
