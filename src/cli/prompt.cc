#include "cli/prompt.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trtmc {

ChatTemplate open_chat_template(const Bundle& bundle) {
  const auto source = bundle.chat_template();
  if (!source) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the model has no chat template", bundle.path().string()),
                "use `trtmc run --raw`, or build it with --chat-template FILE");
  }
  return with_context("chat template",
                      [&] { return ChatTemplate(*source, bundle.manifest().special_tokens); });
}

}  // namespace trtmc
