#include "server/routes.h"

#include "server/metrics_api.h"
#include "server/models_api.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openapi.h"
#include "server/tokenize_api.h"

namespace trtmc {

void add_routes(Router& router, const ServerContext& context, const Operations& operations) {
  add_openai_chat(router, context);
  add_openai_completions(router, context);
  add_models_api(router, context);
  add_tokenize_api(router, context);
  add_health_api(router, context.models, operations.phase);
  add_metrics_api(router, operations.metrics, context.models, operations.open_connections);
  add_openapi(router);
}

}  // namespace trtmc
