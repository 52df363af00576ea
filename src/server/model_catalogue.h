// The models that a server has, by the names that clients call them.
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_identity.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "server/generation_observer.h"
#include "server/reaper.h"

namespace trtmc {

// A model that answers. Shared by those whom it answers: it lives until the last of them is done.
// One that has been in a catalogue dies on a thread of the catalogue's: that takes as long as the
// step that runs and as giving back gigabytes.
struct ServedModel {
  // Throws what LoadedModel and Engine throw. `executor`, if any, computes in the place of the
  // bundle's own.
  ServedModel(std::string served_as, const std::filesystem::path& bundle, const LoadOptions& load,
              const EngineOptions& engine_options_of,
              std::shared_ptr<GenerationObserver> watched_by = {}, Executor* executor = nullptr)
      : name(std::move(served_as)),
        path(bundle),
        load_options(load),
        engine_options(engine_options_of),
        observer(std::move(watched_by)),
        file(identity_of(bundle)),
        loaded(bundle, load),
        fingerprint(fingerprint_of(loaded)),
        memory(loaded.executor().memory()),
        engine(engine_model(loaded, executor), engine_options) {}

  const std::string name;
  const std::filesystem::path path;
  const LoadOptions load_options;
  const EngineOptions engine_options;
  const std::shared_ptr<GenerationObserver> observer;  // May be null.
  const FileIdentity file;  // Looked at before it was read: a later change is seen.
  const std::time_t since = std::time(nullptr);
  const LoadedModel loaded;
  // Names what the numbers of an answer depend on besides the request: with equal fingerprints,
  // equal seeds give equal answers.
  const std::string fingerprint;
  const MemoryUse memory;  // When it had been loaded.
  Engine engine;           // Uses `loaded`, so it dies first.

 private:
  static std::string fingerprint_of(const LoadedModel& model);
  static EngineModel engine_model(const LoadedModel& model, Executor* executor) {
    EngineModel result = model.engine_model();
    if (executor != nullptr) result.executor = executor;
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

  // How many models a reload() has loaded again, has left since their files are what they were, and
  // could not load.
  struct Reload {
    int replaced = 0, unchanged = 0, failed = 0;
  };
  // Loads every model again whose file has changed, or whose engine is not healthy, and puts it in
  // the old one's place; both are in memory until the old one has answered. Where that fails the
  // old one stays, and the log says why. From any thread; takes as long as loading does.
  Reload reload();

 private:
  Reaper reaper_;            // Dies last.
  std::mutex reload_mutex_;  // One at a time.
  mutable std::mutex mutex_;
  Models models_;
};

}  // namespace trtmc
