#include "server/models_api.h"

#include <string>

#include "server/api_error.h"

namespace trtmc {
namespace {

constexpr std::string_view kPath = "/v1/models/";

Json model_json(const ServedModel& model) {
  Json json;
  json.set("id", model.name);
  json.set("object", "model");
  json.set("created", int64_t{model.since});
  json.set("owned_by", "trtmc");
  json.set("max_model_len", model.loaded.context_length());
  return json;
}

void list_models(const ModelCatalogue& models, Exchange& exchange) {
  Json::Array data;
  for (const auto& model : models.all()) data.push_back(model_json(*model));
  Json json;
  json.set("object", "list");
  json.set("data", std::move(data));
  exchange.respond(json_response(200, json));
}

void show_model(const ModelCatalogue& models, Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  const auto name = percent_decoded(path.substr(kPath.size()));
  if (!name) {
    throw FieldError(ErrorCode::kInvalidArgument, "model",
                     "a name with a \"%\" that two hexadecimal digits do not follow");
  }
  if (name->empty()) throw FieldError(ErrorCode::kNotFound, "model", "an empty name");
  exchange.respond(json_response(200, model_json(*models.find(*name))));
}

}  // namespace

void add_models_api(Router& router, const ServerContext& context) {
  const ModelCatalogue& models = context.models;
  router.add({"GET", "/v1/models",
              [&models](const auto& exchange) { list_models(models, *exchange); },
              Route::On::kServer});
  router.add({"GET", std::string(kPath) + "*",
              [&models](const auto& exchange) { show_model(models, *exchange); },
              Route::On::kServer});
}

}  // namespace trtmc
