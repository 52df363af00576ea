#include "cli/model_card.h"

#include <fmt/format.h>

#include "base/json.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

// The text without what Markdown and HTML take for more than text, on one line.
std::string as_plain_text(std::string_view text) {
  constexpr std::string_view kMarkup = "<>[]()&`*\\|";
  std::string plain(text);
  for (char& byte : plain) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x20 || value == 0x7f || kMarkup.find(byte) != kMarkup.npos) byte = ' ';
  }
  return plain;
}

}  // namespace

std::string model_card(const Manifest& manifest, std::string_view type) {
  std::string card = "---\n";
  if (!manifest.licence.empty()) {
    // A string of JSON is one of YAML.
    card += fmt::format("license: {}\n", Json(manifest.licence).dump());
  }
  card += "tags: [onnx]\n---\n\n";
  const std::string source = as_plain_text(manifest.source);
  card += fmt::format("# {} as ONNX\n\n", source);
  card += fmt::format(
      "The decoder of {}{}{} as an ONNX model of opset 23 in {}, written by trtmc {}.\n"
      "Weights were {} in the bundle.\n\n",
      source, manifest.source_revision.empty() ? "" : "@", as_plain_text(manifest.source_revision),
      type, TRTMC_VERSION_STRING,
      manifest.quantization == "none" ? "not quantised" : manifest.quantization);
  card +=
      "Inputs: `input_ids`, `attention_mask` (1 for a token, 0 for padding, over past and new "
      "tokens), `position_ids`,\n`past_key_values.N.key` and `.value`. Outputs: `logits`, "
      "`present.N.key` and `.value`, the past of the next step.\nBatch, sequence and past may have "
      "any length. These are the names that Hugging Face Optimum uses.\n";
  return card;
}

}  // namespace trtmc
