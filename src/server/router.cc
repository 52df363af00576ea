#include "server/router.h"

#include <fmt/format.h>

#include <utility>

#include "server/api_error.h"

namespace trtmc {
namespace {

bool matches(const std::string& pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  return path.size() >= pattern.size() && path.starts_with(pattern.substr(0, pattern.size() - 1));
}

void run(const Handler& handler, const std::shared_ptr<Exchange>& exchange) noexcept {
  try {
    try {
      handler(exchange);
    } catch (const Error& error) {
      exchange->respond(error_response(told_error(error, exchange->request())));
    } catch (...) {
      exchange->respond(error_response(told_error(current_error(), exchange->request())));
    }
  } catch (...) {
    exchange->fail_for_memory();
  }
}

ApiError not_found(const HttpRequest& request) {
  return {.status = 404,
          .message = fmt::format("there is no {}", request.path),
          .type = "invalid_request_error",
          .code = "not_found"};
}

HttpResponse not_allowed(const HttpRequest& request, const std::string& allowed) {
  HttpResponse response = error_response(
      {.status = 405,
       .message = fmt::format("{} takes {}, not {}", request.path, allowed, request.method),
       .type = "invalid_request_error",
       .code = "method_not_allowed"});
  response.headers.add("Allow", allowed);
  return response;
}

HttpResponse unauthorized() {
  HttpResponse response =
      error_response({.status = 401,
                      .message = "no key that is good here: send \"Authorization: Bearer KEY\"",
                      .type = "authentication_error",
                      .code = "invalid_api_key"});
  response.headers.add("WWW-Authenticate", "Bearer");
  return response;
}

ApiError starting() {
  return {.status = 503,
          .message = "the models are still being loaded; try again later",
          .type = "server_error"};
}

ApiError too_busy() {
  return {.status = 429,
          .message = "too many requests are waiting; try again later",
          .type = "rate_limit_error"};
}

}  // namespace

Router::Router(Workers& workers, std::function<bool(const HttpRequest&)> may_pass)
    : workers_(workers), may_pass_(std::move(may_pass)) {}

void Router::add(Route route) { routes_.push_back(std::move(route)); }

const Route* Router::find(const HttpRequest& request, std::string& allowed) const {
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Route& route : routes_) {
    if (!matches(route.path, request.path)) continue;
    if (route.method == method) return &route;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  }
  return nullptr;
}

bool Router::reaches_handler(const HttpRequest& request) const {
  std::string allowed;
  const Route* const route = find(request, allowed);
  return route != nullptr && (!route->needs_key || (may_pass_(request) && !is_closed_()));
}

void Router::handle(const std::shared_ptr<Exchange>& exchange) const {
  const auto route_it = [&](const std::shared_ptr<Exchange>&) {
    const HttpRequest& request = exchange->request();
    std::string allowed;
    const Route* const route = find(request, allowed);
    if (route == nullptr) {
      return exchange->respond(allowed.empty() ? error_response(not_found(request))
                                               : not_allowed(request, allowed));
    }
    exchange->note_route(route->path);
    if (route->needs_key && !may_pass_(request)) return exchange->respond(unauthorized());
    if (route->needs_key && is_closed_()) return exchange->respond(error_response(starting()));
    if (route->on == Route::On::kServer) return run(route->handler, exchange);
    if (!workers_.post([route, exchange] {
          if (!exchange->is_gone()) run(route->handler, exchange);
        })) {
      exchange->respond(error_response(too_busy()));
    }
  };
  run(route_it, exchange);
}

}  // namespace trtmc
