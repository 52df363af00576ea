// A bundle's chat template, for the commands that need no model.
#pragma once

#include "bundle/bundle.h"
#include "text/chat_template.h"

namespace trtmc {

// Throws kUnsupported with a hint if it has none.
ChatTemplate open_chat_template(const Bundle& bundle);

}  // namespace trtmc
