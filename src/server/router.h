// Which path is which handler. Answers what no handler has to see: unknown paths, wrong methods,
// missing keys, errors that a handler throws.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/exchange.h"
#include "server/workers.h"

namespace trtmc {

using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

struct Route {
  std::string method;  // "POST"; GET answers HEAD too.
  std::string path;    // "/v1/models"; one that ends with "/*" takes all below it.
  Handler handler;
  enum class On { kServer, kWorkers } on = On::kWorkers;  // kServer: on its thread, at once.
  bool needs_key = true;
};

class Router {
 public:
  // `may_pass` says whether a request has a key that is good.
  Router(Workers& workers, std::function<bool(const HttpRequest&)> may_pass);

  void add(Route route);
  // While `is_closed` says so, routes that need a key answer 503: the server is starting.
  void set_closed(std::function<bool()> is_closed) { is_closed_ = std::move(is_closed); }
  const std::vector<Route>& routes() const { return routes_; }

  // Whether a handler sees a request of that head. Else its answer is known without its body.
  bool reaches_handler(const HttpRequest& request) const;
  // Answers `exchange` sooner or later. Does not throw.
  void handle(const std::shared_ptr<Exchange>& exchange) const;

 private:
  const Route* find(const HttpRequest& request, std::string& allowed) const;

  Workers& workers_;
  std::function<bool(const HttpRequest&)> may_pass_;
  std::function<bool()> is_closed_ = [] { return false; };
  std::vector<Route> routes_;
};

}  // namespace trtmc
