// Addresses, read by the same parser that fetches them, so that what was checked is what is asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trtmc {

// The address that `location` (of a redirect, perhaps relative) means as seen from `base`, or
// nothing if it is none. Only http and https count.
std::optional<std::string> resolve_url(const std::string& base, const std::string& location);

// "https://host:443": scheme, host in lower case, and port. Nothing if `url` is none.
std::optional<std::string> url_origin(const std::string& url);

// `text` with every byte escaped that is no letter, digit, "-", "_", ".", "~" or one of `also`.
std::string escape_url(std::string_view text, std::string_view also = "/");

}  // namespace trtmc
