#include "trtmc/version.h"

#include "base/log.h"
#include "trtmc/trtmc.h"

namespace trtmc {

std::string_view version() noexcept { return TRTMC_VERSION_STRING; }

void set_log(LogLevel lowest, std::function<void(LogLevel, std::string_view)> sink) {
  set_log_sink(std::move(sink));
  set_log_level(lowest);
}

}  // namespace trtmc
