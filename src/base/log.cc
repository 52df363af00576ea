#include "base/log.h"

#include <fmt/chrono.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogFormat> g_format{LogFormat::kText};
std::mutex g_mutex;
LogSink g_sink;  // Guarded by g_mutex.

void write_to_stderr(LogLevel level, std::string_view line) {
  const bool is_plain = level < LogLevel::kWarning || g_format.load() == LogFormat::kJson;
  const std::string text =
      is_plain ? fmt::format("{}\n", line) : fmt::format("{}: {}\n", to_string(level), line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }

void set_log_format(LogFormat format) { g_format = format; }

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(g_mutex);
  g_sink = std::move(sink);
}

void log_line(LogLevel level, std::string_view message) noexcept {
  if (level < g_level.load()) return;
  try {
    log_record(level, message_line(level, message));
  } catch (const std::bad_alloc&) {
    return;
  }
}

void log_record(LogLevel level, std::string_view line) noexcept {
  if (level < g_level.load()) return;
  try {
    const std::lock_guard lock(g_mutex);
    if (g_sink) return g_sink(level, line);
    write_to_stderr(level, line);
  } catch (const std::bad_alloc&) {
    return;
  }
}

void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept {
  if (level < g_level.load()) return;
  try {
    log_line(level, fmt::vformat(format, args));
  } catch (const std::bad_alloc&) {
    return;
  }
}

std::string message_line(LogLevel level, std::string_view message) {
  if (g_format.load() == LogFormat::kText) return std::string(message);
  Json json;
  json.set("time", utc_text(std::chrono::system_clock::now()));
  json.set("level", to_string(level));
  json.set("message", replace_invalid_utf8(message));
  return json.dump();
}

std::string_view to_string(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000)),
                     milliseconds % 1000);
}

}  // namespace trtmc
