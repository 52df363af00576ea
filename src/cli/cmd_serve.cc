#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "bundle/bundle.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/models_api.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/request_log.h"

namespace trtmc {
namespace {

constexpr int kMaxWorkers = 4;
constexpr int kMaxWaiting = 1024;  // Requests for a worker.

// What signals ask for.
class SignalDesk {
 public:
  enum class Wish { kNone, kReload, kStop };

  void on_signal(int number) {
    const std::lock_guard lock(mutex_);
    number == SIGHUP ? ++reloads_ : ++stops_;
    changed_.notify_all();
  }

  // Waits for the next one.
  Wish next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stops_ > 0 || reloads_ > 0; });
    if (stops_ > 0) return Wish::kStop;
    reloads_ = 0;
    return Wish::kReload;
  }

  bool is_impatient() const {
    const std::lock_guard lock(mutex_);
    return stops_ > 1;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int stops_ = 0, reloads_ = 0;
};

// The bundles with a name each: as given, else the checkpoint's, else the file's.
std::vector<NamedBundle> named(std::vector<NamedBundle> bundles) {
  std::map<std::string, std::string> paths;
  for (NamedBundle& bundle : bundles) {
    if (bundle.name.empty()) bundle.name = Bundle(bundle.path).manifest().source;
    if (bundle.name.empty()) bundle.name = bundle.path.stem().string();
    const auto [other, is_new] = paths.emplace(bundle.name, bundle.path.string());
    if (is_new) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} and {}: both are called \"{}\"", other->second,
                            bundle.path.string(), bundle.name),
                "give one another name: NAME=BUNDLE");
  }
  return bundles;
}

ServedRequestLog request_log(const ServeCommand& command) {
  if (!command.logs_requests) return {};
  const auto format = command.logs_json ? RequestLogFormat::kJson : RequestLogFormat::kText;
  return [format](const ServedRequest& request) {
    log_line(LogLevel::kInfo, request_line(request, format));
  };
}

HttpResponse still_loading() {
  return error_response({.status = 503,
                         .message = "the models are still being loaded; try again later",
                         .type = "server_error"});
}

// Everything that serves, in the order in which it depends on each other. Listens first, so that a
// taken port is found before models are read, and those who watch see that it starts.
class Service {
 public:
  explicit Service(const ServeCommand& command)
      : keys_(command.api_key_file.empty() ? ApiKeys() : ApiKeys(command.api_key_file)),
        workers_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxWorkers),
                 kMaxWaiting),
        router_(workers_, [this](const HttpRequest& request) { return keys_.let_in(request); }) {
    const std::vector<NamedBundle> bundles = named(command.bundles);
    add_routes();
    server_ = std::make_unique<HttpServer>(
        command.http, [this](const std::shared_ptr<Exchange>& exchange) { handle(exchange); },
        request_log(command));
    for (const NamedBundle& bundle : bundles) {
      log_info("loading {} from {}", bundle.name, bundle.path.string());
      models_.put(
          std::make_shared<ServedModel>(bundle.name, bundle.path, command.load, command.engine));
    }
    is_loaded_ = true;
  }

  HttpServer& server() { return *server_; }

 private:
  void add_routes() {
    const ServerContext context{models_, pump_};
    add_models_api(router_, context);
    add_openai_chat(router_, context);
    add_openai_completions(router_, context);
  }

  void handle(const std::shared_ptr<Exchange>& exchange) const {
    if (!is_loaded_) return exchange->respond(still_loading());
    router_.handle(exchange);
  }

  const ApiKeys keys_;
  ModelCatalogue models_;
  EventPump pump_;
  Workers workers_;
  Router router_;
  std::atomic<bool> is_loaded_ = false;
  std::unique_ptr<HttpServer> server_;
};

// True if all requests ended.
bool drain(HttpServer& server, const SignalDesk& desk, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kGlance{50};
  log_info("stopping: {} connections are open", server.open_connections());
  const SteadyTime deadline = std::chrono::steady_clock::now() + patience;
  server.drain();
  while (!desk.is_impatient()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (server.await_drained(std::min(deadline, now + kGlance))) return true;
    if (now >= deadline) break;
  }
  log_warning("stopping with {} connections open: their requests are cut off",
              server.open_connections());
  return false;
}

}  // namespace

void execute(const ServeCommand& command, Console& console) {
  console.configure_log(command.log);
  Service service(command);
  SignalDesk desk;
  const InterruptScope interrupt([&](int number) { desk.on_signal(number); });
  console.print(service.server().url() + "\n");
  while (desk.next() != SignalDesk::Wish::kStop) log_info("there is nothing to reload");
  if (!drain(service.server(), desk, command.drain)) throw Interrupted();
}

}  // namespace trtmc
