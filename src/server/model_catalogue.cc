#include "server/model_catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

std::string names_of(const ModelCatalogue::Models& models) {
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(Json(model->name).dump());
  return fmt::format("{}", fmt::join(names, ", "));
}

// Whole: nobody waits for it, since the old one answers meanwhile.
std::shared_ptr<ServedModel> loaded_again(const ServedModel& model) {
  Bundle(model.path).verify_hashes();
  return std::make_shared<ServedModel>(model.name, model.path, model.load_options,
                                       model.engine_options, model.observer);
}

}  // namespace

std::string ServedModel::fingerprint_of(const LoadedModel& model) {
  const std::string text =
      fmt::format("{} {} {}", TRTMC_VERSION_STRING, to_hex(model.bundle().identity()),
                  model.executor().description());
  return fmt::format("fp_{:010x}", hash64(std::as_bytes(std::span(text))) >> 24);
}

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
  model = reaper_.in_care(std::move(model));
  std::shared_ptr<ServedModel> old;  // Declared first: it dies after the lock is free.
  const std::lock_guard lock(mutex_);
  for (auto& present : models_) {
    if (present->name != model->name) continue;
    old = std::exchange(present, std::move(model));
    return;
  }
  models_.push_back(std::move(model));
}

ModelCatalogue::Reload ModelCatalogue::reload() {
  const std::lock_guard one_at_a_time(reload_mutex_);
  Reload result;
  Models models = all();
  for (auto& held : models) {
    // Given up before the next one is loaded: what has been replaced may be large. Its answers may
    // keep it longer.
    const std::shared_ptr<ServedModel> model = std::move(held);
    const std::string name = Json(model->name).dump();
    try {
      if (identity_of(model->path) == model->file && model->engine.healthy()) {
        ++result.unchanged;
        continue;
      }
      reaper_.await_idle();
      put(loaded_again(*model));
      ++result.replaced;
      log_info("model {}: loaded again from {}", name, model->path.string());
    } catch (...) {
      ++result.failed;
      log_error("model {}: can't be loaded again, so it stays as it was: {}", name,
                current_error().what());
    }
  }
  return result;
}

}  // namespace trtmc
