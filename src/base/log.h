// Levelled lines to standard error through one sink. Thread-safe: a line is written whole. One that
// finds no memory is left out.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "trtmc/values.h"

namespace trtmc {

using LogSink = std::function<void(LogLevel, std::string_view line)>;

void set_log_level(LogLevel level);  // Lines below it are dropped. At start: kInfo.
void set_log_sink(LogSink sink);     // An empty sink brings standard error back.
void log_line(LogLevel level, std::string_view line) noexcept;
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

}  // namespace trtmc
