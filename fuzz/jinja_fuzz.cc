// A chat template, and below a line of four dashes the JSON of its variables: whatever they are,
// they render or are refused. Two renders agree.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "text/chat_template.h"

namespace {

constexpr std::string_view kSeparator = "\n----\n";

trtmc::ChatInput to_input(std::string_view json) {
  trtmc::ChatInput input;
  input.messages = trtmc::Json::Array();
  input.local_time = trtmc::parse_date("2026-09-04");
  if (json.empty()) return input;
  const trtmc::Json variables = trtmc::Json::parse(json);
  if (variables.object() == nullptr) return input;
  input.template_kwargs = *variables.object();
  if (const trtmc::Json* messages = variables.find("messages")) input.messages = *messages;
  if (const trtmc::Json* tools = variables.find("tools")) input.tools = *tools;
  return input;
}

std::optional<std::string> rendered(const trtmc::ChatTemplate& chat,
                                    const trtmc::ChatInput& input) {
  try {
    return chat.render(input);
  } catch (const trtmc::Error&) {
    return std::nullopt;  // The one way to refuse.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t split = text.find(kSeparator);
  const bool whole = split == std::string_view::npos;
  try {
    const trtmc::ChatTemplate chat(text.substr(0, split));
    const trtmc::ChatInput input = to_input(whole ? "" : text.substr(split + kSeparator.size()));
    const auto first = rendered(chat, input);
    if (first != rendered(chat, input)) std::abort();
    if (first && trtmc::find_invalid_utf8(*first)) std::abort();
  } catch (const trtmc::Error&) {
    // Neither a template nor its variables.
  }
  return 0;
}
