// Levelled lines to standard error through one sink. Thread-safe: a line is written whole.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "trtmc/values.h"

namespace trtmc {

using LogSink = std::function<void(LogLevel, std::string_view line)>;

void set_log_level(LogLevel level);  // Lines below it are dropped. At start: kInfo.
void set_log_sink(LogSink sink);     // An empty sink brings standard error back.
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace trtmc
