// Where the hub is and how it is used, as the environment variables of Hugging Face's own tools
// say (huggingface_hub, constants.py). docs/hub.md lists them.
#pragma once

#include <filesystem>
#include <string>

#include "base/environment.h"

namespace trtmc {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // Without a slash at its end.
  std::string token = {};                           // Empty: none.
  std::filesystem::path cache = {};                 // The folder that holds models--….
  bool offline = false;
  bool symlinks = true;  // False: a snapshot holds copies.
  bool progress = true;
  // A connection that gives less than a kilobyte a second for so long is given up.
  int stall_timeout_s = 10;
};

// Throws kInvalidArgument naming the variable that makes no sense, kNotFound if neither a cache
// nor a home folder is named.
HubSettings read_hub_settings(const Environment& environment);

// The cache alone, for those who ask nobody: no other setting is looked at. Throws kNotFound as
// above.
std::filesystem::path hub_cache_folder(const Environment& environment);

}  // namespace trtmc
