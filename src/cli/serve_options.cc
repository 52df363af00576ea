#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/command_parser.h"
#include "cli/option_values.h"
#include "cli/shared_options.h"

namespace trtmc {
namespace {

constexpr int64_t kMaxSeconds = int64_t{7} * 24 * 3600;
constexpr int64_t kMaxConnections = 1'000'000;
constexpr uint64_t kMaxBody = uint64_t{1} << 30;
constexpr uint64_t kMaxUnsent = uint64_t{1} << 30;

// "BUNDLE" or "NAME=BUNDLE". A path that has "=" in it begins with "/" or ".", or has a name.
NamedBundle parse_bundle(const std::string& text) {
  const size_t equals = text.find('=');
  const bool is_path =
      equals == std::string::npos || text.starts_with('.') || text.starts_with('/');
  NamedBundle bundle{"", text};
  if (!is_path) bundle = {text.substr(0, equals), text.substr(equals + 1)};
  if (bundle.path.empty() || (!is_path && bundle.name.empty())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\", expected BUNDLE or NAME=BUNDLE", text));
  }
  if (find_invalid_utf8(bundle.name)) {
    throw Error(ErrorCode::kInvalidArgument, "the name before \"=\" is not UTF-8");
  }
  if (std::ranges::any_of(bundle.name, is_ascii_control)) {
    throw Error(ErrorCode::kInvalidArgument, "the name before \"=\" has a control character");
  }
  return bundle;
}

CommandParser::Setter seconds_into(std::chrono::milliseconds& target, int64_t low) {
  return [&target, low](const std::string& text) {
    target = std::chrono::seconds(parse_integer(text, low, kMaxSeconds));
  };
}

CommandParser::Setter bytes_into(size_t& target, uint64_t high) {
  return [&target, high](const std::string& text) {
    const uint64_t bytes = parse_bytes(text);
    if (bytes == 0 || bytes > high) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\", expected a size from 1 to {} bytes", text, high));
    }
    target = static_cast<size_t>(bytes);
  };
}

void declare_address(CommandParser& parser, ServeCommand& command) {
  HttpServerOptions& http = command.service.http;
  parser.shared_option("--host", "HOST",
                       "address or name to listen on (default: 127.0.0.1, this machine alone)",
                       [&http](const std::string& text) {
                         if (text.empty()) {
                           throw Error(ErrorCode::kInvalidArgument, "empty, expected a host");
                         }
                         // As in a URL, where an address of IPv6 stands in brackets.
                         const bool is_bracketed = text.starts_with('[') && text.ends_with(']');
                         http.host = is_bracketed ? text.substr(1, text.size() - 2) : text;
                       });
  parser.shared_option("--port", "N", "port to listen on (default: 8080; 0: one that is free)",
                       [&http](const std::string& text) {
                         http.port = static_cast<uint16_t>(parse_integer(text, 0, 65535));
                       });
  parser.shared_option("--api-key-file", "FILE", "let in only who has one of the keys in FILE",
                       path_into(command.service.api_key_file));
  parser.shared_option("--tls-cert", "FILE", "speak TLS with this certificate chain (PEM)",
                       path_into(http.tls_cert));
  parser.shared_option("--tls-key", "FILE", "the certificate's private key (PEM)",
                       path_into(http.tls_key));
  parser.shared_repeatable(
      "--cors-origin", "ORIGIN", "let pages of ORIGIN ask from browsers, \"*\": of all; repeatable",
      [&http](const std::string& text) {
        if (text != "*" && text.find("://") == std::string::npos) {
          throw Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\", expected an origin such as "
                                                               "https://chat.example.org, or *",
                                                               text));
        }
        http.cors_origins.push_back(text);
      });
}

void declare_limits(CommandParser& parser, ServeCommand& command) {
  HttpServerOptions& http = command.service.http;
  parser.group("Limits");
  parser.shared_option("--max-queue", "N", "requests that may wait, beyond them 429 (default: 256)",
                       [&command](const std::string& text) {
                         command.service.engine.max_queued = static_cast<int>(
                             parse_integer(text, 1, std::numeric_limits<int>::max()));
                       });
  parser.shared_option(
      "--max-connections", "N", "connections at a time, beyond them 503 (default: 1024)",
      [&http](const std::string& text) {
        http.max_connections = static_cast<int>(parse_integer(text, 1, kMaxConnections));
      });
  parser.shared_option("--max-body", "SIZE", "a request's size, beyond it 413 (default: 8MiB)",
                       bytes_into(http.max_body_bytes, kMaxBody));
  parser.shared_option("--max-unsent", "SIZE",
                       "of a stream that is not read; then it is cut off (default: 1MiB)",
                       bytes_into(http.max_unsent.bytes, kMaxUnsent));
  parser.shared_option("--request-timeout", "SECONDS",
                       "for an answer, then it is given up (default: 600; 0: none)",
                       seconds_into(http.request_timeout, 0));
  parser.shared_option("--idle-timeout", "SECONDS",
                       "for a connection without a request (default: 75)",
                       seconds_into(http.idle_timeout, 1));
  parser.shared_option("--drain-seconds", "SECONDS",
                       "for running requests when asked to stop (default: 30)",
                       seconds_into(command.drain, 0));
}

void declare_request_log(CommandParser& parser, ServeCommand& command) {
  parser.shared_option("--log-format", "NAME",
                       "lines on requests: text, json (messages too), or none (default: text)",
                       [&command](const std::string& text) {
                         constexpr std::string_view kNames[] = {"text", "json", "none"};
                         constexpr std::optional<RequestLogFormat> kFormats[] = {
                             RequestLogFormat::kText, RequestLogFormat::kJson, std::nullopt};
                         command.service.request_log = kFormats[parse_name(text, kNames)];
                         command.log.format = command.service.request_log == RequestLogFormat::kJson
                                                  ? LogFormat::kJson
                                                  : LogFormat::kText;
                       });
  parser.choices({"text", "json", "none"});
}

void check_tls(const HttpServerOptions& http) {
  if (http.tls_cert.empty() == http.tls_key.empty()) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} is given without {}", http.tls_cert.empty() ? "--tls-key" : "--tls-cert",
                  http.tls_cert.empty() ? "--tls-cert" : "--tls-key"),
      "TLS needs both");
}

}  // namespace

ServeCommand parse_serve_command(std::span<const std::string> arguments, const Settings& settings) {
  ServeCommand command;
  command.service.request_log = RequestLogFormat::kText;
  CommandParser parser("serve", "Answer requests over HTTP, as OpenAI's API does.");
  parser.positionals(
      "bundle",
      "the models: files that `trtmc build` wrote; NAME=FILE sets what clients "
      "call one (default: its checkpoint's name)",
      [&](const std::string& text) { command.service.bundles.push_back(parse_bundle(text)); });
  declare_address(parser, command);
  declare_limits(parser, command);
  declare_load(parser, command.service.load);
  declare_speculate(parser, command.service.engine);
  declare_log(parser, command.log);
  declare_request_log(parser, command);
  parser.footer(
      "SIGTERM or Ctrl-C lets running requests end, a second one stops at once.\n"
      "SIGHUP reads bundles, keys and certificate again where they have changed.\n"
      "docs/serving.md has the routes.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  check_load(parser, command.service.load);
  check_tls(command.service.http);
  return command;
}

}  // namespace trtmc
