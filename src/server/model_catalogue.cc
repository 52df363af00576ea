#include "server/model_catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace trtmc {
namespace {

std::string names_of(const ModelCatalogue::Models& models) {
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(Json(model->name).dump());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

ModelCatalogue::Models ModelCatalogue::all() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

std::shared_ptr<ServedModel> ModelCatalogue::find(std::string_view name) const {
  const Models models = all();
  if (name.empty() && models.size() == 1) return models.front();
  const auto found =
      std::ranges::find_if(models, [&](const auto& model) { return model->name == name; });
  if (found != models.end()) return *found;
  if (name.empty()) {
    throw FieldError(ErrorCode::kInvalidArgument, "model",
                     fmt::format("missing, expected one of {}", names_of(models)));
  }
  throw FieldError(ErrorCode::kNotFound, "model",
                   fmt::format("{} is not served, only {}", Json(name).dump(), names_of(models)));
}

void ModelCatalogue::put(std::shared_ptr<ServedModel> model) {
  std::shared_ptr<ServedModel> old;  // Declared first: it dies after the lock is free.
  const std::lock_guard lock(mutex_);
  for (auto& present : models_) {
    if (present->name != model->name) continue;
    old = std::exchange(present, std::move(model));
    return;
  }
  models_.push_back(std::move(model));
}

}  // namespace trtmc
