// The README.md of an exported folder, for who finds it without knowing where it came from.
#pragma once

#include <string>
#include <string_view>

#include "bundle/manifest.h"

namespace trtmc {

// Markdown with YAML in front, as the Hugging Face hub reads it. type: "f16". Names of the manifest
// are anybody's: they can neither add keys nor markup.
std::string model_card(const Manifest& manifest, std::string_view type);

}  // namespace trtmc
