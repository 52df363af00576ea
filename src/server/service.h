// A server with all of its parts: models, routes, keys, metrics, log.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "server/http_server.h"
#include "server/request_log.h"

namespace trtmc {

// A bundle and what clients call it.
struct NamedBundle {
  std::string name;  // Empty: its checkpoint's name, or its file's if that is not known.
  std::filesystem::path path;
};

struct ServiceOptions {
  std::vector<NamedBundle> bundles;
  LoadOptions load;
  EngineOptions engine;
  HttpServerOptions http;
  std::filesystem::path api_key_file;           // Empty: no key is needed.
  std::optional<RequestLogFormat> request_log;  // None: no lines on requests.
  std::string version, build_id;                // Of the program, for its metrics.
};

class Service {
 public:
  // Listens, then loads the models; serves once it returns. Throws what HttpServer, ApiKeys,
  // LoadedModel and Engine throw, and kInvalidArgument for two models of one name.
  explicit Service(const ServiceOptions& options);
  ~Service();  // Cuts off what still runs.
  Service(const Service&) = delete;

  std::string url() const;
  int open_connections() const;

  // Reads again what has changed: bundles, keys, certificate. What can't be read stays as it was,
  // and the log says why. Takes as long as loading does.
  void reload();

  // Takes no more connections and waits until running requests have ended, or until `deadline`, or
  // until `is_impatient` says so. True if all have ended.
  bool drain(std::chrono::steady_clock::time_point deadline,
             const std::function<bool()>& is_impatient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
