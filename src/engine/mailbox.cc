#include "engine/mailbox.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/engine.h"

namespace trtmc {

void Mailbox::check_room(const EngineOptions& options, int64_t num_tokens) const {
  if (!lost.empty()) {
    throw Error(ErrorCode::kInternal, "the engine has lost its device: " + lost);
  }
  if (num_queued >= options.max_queued) {
    throw QueueFullError(fmt::format("{} requests are waiting, as many as may", num_queued));
  }
  if (num_prompt_tokens > 0 && num_prompt_tokens > options.max_prompt_tokens - num_tokens) {
    throw QueueFullError(fmt::format(
        "the answers that run and wait have prompts of {} tokens, with these there would be more "
        "than {}",
        num_prompt_tokens, options.max_prompt_tokens));
  }
}

QueueFullError::QueueFullError(const std::string& message)
    : Error(ErrorCode::kExhausted, message, "try again later") {}

}  // namespace trtmc
