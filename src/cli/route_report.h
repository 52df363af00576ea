// The decoder routes of a bundle, as `inspect` prints them: what the tensorrt backend would do with
// it, asked without that backend.
#pragma once

#include <string>

#include "base/json.h"
#include "bundle/bundle.h"
#include "cli/options.h"
#include "graph/decoder_route.h"

namespace trtmc {

// What `options` leave open is the bundle's own: the type of its weights (bf16 if they are
// quantised) and its context.
RouteQuestion route_question(const Bundle& bundle, const RouteOptions& options);

// [{"name", "taken", "possible", "reasons": [{"subject", "for", "text"}]}]
Json to_json(const RouteDecision& decision);
// A line for each route with one for each reason below it.
std::string to_text(const RouteDecision& decision);

}  // namespace trtmc
