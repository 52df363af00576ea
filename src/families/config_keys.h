// A family's word on every key of a configuration: read, ignored for a reason, or refused. Shared
// by the families.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"

namespace trtmc {

struct IgnoredKey {
  std::string_view key;
  std::string_view reason;  // Why the forward pass does not depend on it.
};

// Keys that any Transformers configuration may have and that change no logits.
std::span<const IgnoredKey> generally_ignored_keys();

// Throws kUnsupported, by name, for settings that change the maths in ways that no family here
// implements (quantised weights, cross-attention, pruned heads). Logs a warning for each key that
// is neither in `read` nor among the ignored ones: a later Transformers may have given it a
// meaning.
void check_config_keys(const JsonCursor& config, std::span<const std::string_view> read,
                       std::span<const IgnoredKey> ignored);

// Throws kUnsupported unless the member is missing, null or `expected`.
void require_flag(const JsonCursor& config, std::string_view key, bool expected);

}  // namespace trtmc
