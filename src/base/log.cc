#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>

namespace trtmc {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::mutex g_mutex;
LogSink g_sink;  // Guarded by g_mutex.

const char* prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kWarning:
      return "warning: ";
    case LogLevel::kError:
      return "error: ";
    default:
      return "";
  }
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(g_mutex);
  g_sink = std::move(sink);
}

void log_line(LogLevel level, std::string_view line) noexcept {
  if (level < g_level.load()) return;
  try {
    const std::lock_guard lock(g_mutex);
    if (g_sink) return g_sink(level, line);
    const std::string text = fmt::format("{}{}\n", prefix(level), line);
    std::fwrite(text.data(), 1, text.size(), stderr);
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

}  // namespace trtmc
