// GET /openapi.json: what the server takes and gives, as an OpenAPI document. It is
// src/server/openapi.json, written by hand.
#pragma once

#include <string_view>

#include "server/router.h"

namespace trtmc {

extern const std::string_view kOpenApiDocument;  // JSON, with the program's version.

// No key is needed.
void add_openapi(Router& router);

}  // namespace trtmc
