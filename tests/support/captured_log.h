// The log's lines while it lives, instead of standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace trtmc {

class CapturedLog {
 public:
  CapturedLog() {
    set_log_sink([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
  }
  ~CapturedLog() { set_log_sink({}); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace trtmc
