#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "bundle/bundle.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
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

// A model's name for clients: as given, else its checkpoint's, else its file's.
std::string served_name(const NamedBundle& bundle) {
  if (!bundle.name.empty()) return bundle.name;
  const std::string source = Bundle(bundle.path).manifest().source;
  return source.empty() ? bundle.path.stem().string() : source;
}

void load_models(const ServeCommand& command, ModelCatalogue& models) {
  for (const NamedBundle& bundle : command.bundles) {
    const std::string name = served_name(bundle);
    for (const auto& other : models.all()) {
      if (other->name != name) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {}: both are called \"{}\"", other->path.string(),
                              bundle.path.string(), name),
                  "give one another name: NAME=BUNDLE");
    }
    models.put(std::make_shared<ServedModel>(name, bundle.path, command.load, command.engine));
    log_info("{}: {}", name, bundle.path.string());
  }
}

ServedRequestLog request_log(const ServeCommand& command) {
  if (!command.logs_requests) return {};
  const auto format = command.logs_json ? RequestLogFormat::kJson : RequestLogFormat::kText;
  return [format](const ServedRequest& request) {
    log_line(LogLevel::kInfo, request_line(request, format));
  };
}

// Everything that serves, in the order in which it depends on each other.
class Service {
 public:
  explicit Service(const ServeCommand& command)
      : keys_(command.api_key_file.empty() ? ApiKeys() : ApiKeys(command.api_key_file)),
        workers_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxWorkers),
                 kMaxWaiting),
        router_(workers_, [this](const HttpRequest& request) { return keys_.let_in(request); }) {
    load_models(command, models_);
    const ServerContext context{models_, pump_};
    add_models_api(router_, context);
    server_ = std::make_unique<HttpServer>(
        command.http,
        [this](const std::shared_ptr<Exchange>& exchange) { router_.handle(exchange); },
        request_log(command));
  }

  HttpServer& server() { return *server_; }

 private:
  const ApiKeys keys_;
  ModelCatalogue models_;
  EventPump pump_;
  Workers workers_;
  Router router_;
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
