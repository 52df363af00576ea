// Levelled lines to standard error through one sink: messages, and records that have a form of
// their own. Thread-safe: a line is written whole. One that finds no memory is left out.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "trtmc/values.h"

namespace trtmc {

using LogSink = std::function<void(LogLevel, std::string_view line)>;

void set_log_level(LogLevel level);  // Lines below it are dropped. At start: kInfo.
void set_log_sink(LogSink sink);     // An empty sink brings standard error back.

// kText: a message is its line, in front of which a sink may put level and time. kJson: it becomes
// {"time":…,"level":…,"message":…}, to which nothing is added. At start: kText.
enum class LogFormat { kText, kJson };
void set_log_format(LogFormat format);

void log_line(LogLevel level, std::string_view message) noexcept;
void log_record(LogLevel level, std::string_view line) noexcept;  // Is its line in every format.
void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, const Args&... args) {
  log_formatted(LogLevel::kDebug, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, const Args&... args) {
  log_formatted(LogLevel::kInfo, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, const Args&... args) {
  log_formatted(LogLevel::kWarning, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, const Args&... args) {
  log_formatted(LogLevel::kError, format, fmt::make_format_args(args...));
}

// The line of a message, for what goes to a sink by itself.
std::string message_line(LogLevel level, std::string_view message);
std::string_view to_string(LogLevel level);  // "debug", "info", "warning", "error"
std::string utc_text(std::chrono::system_clock::time_point time);  // "2026-01-31T12:00:00.123Z"

}  // namespace trtmc
