#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "bundle/bundle.h"
#include "server/api_keys.h"
#include "server/health_api.h"
#include "server/routes.h"

namespace trtmc {
namespace {

constexpr int kMaxWorkers = 4;
constexpr int kMaxWaiting = 1024;  // Requests for a worker.

// The bundles with a name each.
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

// The keys of a file, which may be read again while requests are let in.
class KeyRing {
 public:
  explicit KeyRing(std::filesystem::path file) : file_(std::move(file)) { read(); }

  void read() {
    if (file_.empty()) return;
    auto keys = std::make_shared<const ApiKeys>(file_);
    const std::lock_guard lock(mutex_);
    keys_ = std::move(keys);
  }

  bool has_file() const { return !file_.empty(); }

  bool let_in(const HttpRequest& request) const {
    std::shared_ptr<const ApiKeys> keys;
    {
      const std::lock_guard lock(mutex_);
      keys = keys_;
    }
    return keys == nullptr || keys->let_in(request);
  }

 private:
  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ApiKeys> keys_;
};

// Something to read again; the others go on if it fails. Whether it has been read.
template <typename Read>
bool read_again(Read&& read) {
  try {
    read();
    return true;
  } catch (const std::exception&) {
    log_warning("not read again: {}", current_error().what());
    return false;
  }
}

// A part of what a reload says at its end.
std::string outcome(std::string_view what, bool is_read) {
  return fmt::format(", {} {}", what, is_read ? "read again" : "as before");
}

}  // namespace

// In the order in which they depend on each other; they die in reverse. An engine wakes the pump
// until it dies, a worker uses the routes until it has ended, and each exchange that dies is
// logged.
struct Service::Impl {
  explicit Impl(const ServiceOptions& options)
      : log_format(options.request_log),
        keys(options.api_key_file),
        metrics(options.version, options.build_id),
        router(workers, [this](const HttpRequest& request) { return keys.let_in(request); }),
        workers(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxWorkers),
                kMaxWaiting) {
    const std::vector<NamedBundle> bundles = named(options.bundles);
    router.set_closed([this] { return phase == ServerPhase::kStarting; });
    add_routes(router, {models, pump}, {phase, metrics, [this] { return open_connections(); }});
    // Before the models: a port that is taken is found at once, and probes see how far it is.
    HttpServerOptions http = options.http;
    http.refuses_foreign_pages = options.api_key_file.empty();
    server = std::make_unique<HttpServer>(
        http,
        [this](std::shared_ptr<Exchange> exchange) {
          router.handle(metrics.in_flight(std::move(exchange)));
        },
        [this](const ServedRequest& request) { on_served(request); },
        [this](const HttpRequest& head) { return router.reaches_handler(head); });
    listening = server.get();
    for (const NamedBundle& bundle : bundles) {
      log_info("loading {} from {}", bundle.name, bundle.path.string());
      models.put(std::make_shared<ServedModel>(bundle.name, bundle.path, options.load,
                                               options.engine, metrics.observer_of(bundle.name)));
    }
    phase = ServerPhase::kServing;
  }

  int open_connections() const {
    const HttpServer* const known = listening;
    return known == nullptr ? 0 : known->open_connections();
  }

  void on_served(const ServedRequest& request) {
    metrics.count_request(request.method, request.route.empty() ? "other" : request.route,
                          request.status, request.duration_ms / 1000);
    if (!log_format) return;
    const bool is_noise = is_probe(request.path) && request.status < 400;
    log_record(is_noise ? LogLevel::kDebug : LogLevel::kInfo, request_line(request, *log_format));
  }

  const std::optional<RequestLogFormat> log_format;
  KeyRing keys;
  Metrics metrics;
  std::atomic<ServerPhase> phase = ServerPhase::kStarting;
  EventPump pump;
  ModelCatalogue models;
  Router router;
  Workers workers;
  std::atomic<const HttpServer*> listening = nullptr;
  std::unique_ptr<HttpServer> server;
};

Service::Service(const ServiceOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Service::~Service() = default;

std::string Service::url() const { return impl_->server->url(); }

int Service::open_connections() const { return impl_->server->open_connections(); }

void Service::reload() {
  const bool has_keys = read_again([&] { impl_->keys.read(); });
  const bool has_certificate = read_again([&] { impl_->server->reload_certificate(); });
  std::string others;
  if (impl_->keys.has_file()) others += outcome("keys", has_keys);
  if (impl_->server->has_certificate()) others += outcome("certificate", has_certificate);
  read_again([&] {
    const ModelCatalogue::Reload models = impl_->models.reload();
    log_info("reloaded: {} models are new, {} are as they were, {} could not be read{}",
             models.replaced, models.unchanged, models.failed, others);
  });
}

bool Service::drain(std::chrono::steady_clock::time_point deadline,
                    const std::function<bool()>& is_impatient) {
  constexpr std::chrono::milliseconds kGlance{50};
  constexpr std::chrono::seconds kLastWords{1};  // For the clients to take what they are told.
  impl_->phase = ServerPhase::kDraining;
  impl_->server->drain();
  while (!is_impatient()) {
    const auto now = std::chrono::steady_clock::now();
    if (impl_->server->await_drained(std::min(deadline, now + kGlance))) return true;
    if (now >= deadline) break;
  }
  impl_->server->cut_off();
  impl_->server->await_drained(std::chrono::steady_clock::now() + kLastWords);
  return false;
}

}  // namespace trtmc
