// The models that a server has, by the names that clients call them.
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/loaded_model.h"

namespace trtmc {

// A model that answers. Shared by those whom it answers: it lives until the last of them is done.
struct ServedModel {
  ServedModel(std::string served_as, const std::filesystem::path& bundle, const LoadOptions& load,
              const EngineOptions& engine_options)
      : name(std::move(served_as)),
        path(bundle),
        loaded(bundle, load),
        engine(loaded, engine_options) {}

  // Computed by `executor` in the place of the bundle's own.
  ServedModel(std::string served_as, const std::filesystem::path& bundle, const LoadOptions& load,
              const EngineOptions& engine_options, Executor& executor)
      : name(std::move(served_as)),
        path(bundle),
        loaded(bundle, load),
        engine(on(loaded, executor), engine_options) {}

  const std::string name;
  const std::filesystem::path path;
  const std::time_t since = std::time(nullptr);
  const LoadedModel loaded;
  Engine engine;  // Uses `loaded`, so it dies first.

 private:
  static EngineModel on(const LoadedModel& model, Executor& executor) {
    EngineModel result = model.engine_model();
    result.executor = &executor;
    return result;
  }
};

class ModelCatalogue {
 public:
  using Models = std::vector<std::shared_ptr<ServedModel>>;

  // In the order in which they were added.
  Models all() const;

  // The model of that name; without a name the only one there is. Throws a FieldError of "model":
  // kNotFound if there is none of that name, kInvalidArgument for no name where there are several.
  std::shared_ptr<ServedModel> find(std::string_view name) const;

  // Adds a model, in the place of one of the same name, which ends when its answers do.
  void put(std::shared_ptr<ServedModel> model);

 private:
  mutable std::mutex mutex_;
  Models models_;
};

}  // namespace trtmc
