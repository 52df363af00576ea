#include "server/openapi.h"

#include <string>

namespace trtmc {

void add_openapi(Router& router) {
  router.add({"GET", "/openapi.json",
              [](const auto& exchange) {
                exchange->respond(
                    text_response(200, "application/json", std::string(kOpenApiDocument)));
              },
              Route::On::kServer, /*needs_key=*/false});
}

}  // namespace trtmc
