// Models of the hub as the commands see them: which text means one, and how its download is shown.
#pragma once

#include <optional>
#include <string_view>

#include "cli/console.h"
#include "hub/hub_client.h"

namespace trtmc {

// "OWNER/NAME" or "OWNER/NAME@REVISION", or nothing for a text of another form or the path of a
// GGUF file. Throws kInvalidArgument for a revision that can't be one.
std::optional<HubSource> hub_source_of(std::string_view text);

// Sees to it that the cache has the model whole; shows what is fetched and how far it is. Ctrl-C
// ends it with Interrupted, and what was fetched stays for the next time. `on_config`, if any, as
// in PullObserver.
Snapshot pull(const HubSource& source, Console& console,
              std::function<void(const std::string& config)> on_config = {});

// The cache's copy, without asking the hub.
Snapshot find_cached(const HubSource& source);

}  // namespace trtmc
