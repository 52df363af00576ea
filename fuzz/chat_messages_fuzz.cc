// A conversation as `trtmc prompt` takes it, through real templates: the first line names one, the
// rest is the JSON. It is refused, or becomes a prompt in UTF-8, the same every time and the same
// for the JSON that we print of it.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "fuzz/fuzz_input.h"
#include "text/chat_template.h"

namespace {

using trtmc::ChatTemplate;
using trtmc::Json;

const std::vector<ChatTemplate>& templates() {
  static const std::vector<ChatTemplate> all = [] {
    std::vector<ChatTemplate> loaded;
    loaded.emplace_back(trtmc::source_file("tests/data/smollm3-3b/chat_template.jinja"));
    loaded.emplace_back(trtmc::source_file("models/smollm3-tiny/chat_template.jinja"));
    const std::map<std::string, std::string> special = {{"bos_token", "<s>"},
                                                        {"eos_token", "</s>"}};
    for (const char* style : {"chatml", "command_r", "deepseek_r1", "features", "gemma", "granite",
                              "hermes", "llama3", "mistral", "phi", "qwen", "zephyr"}) {
      loaded.emplace_back(
          trtmc::source_file(std::string("tests/golden/templates/") + style + ".jinja"), special);
    }
    return loaded;
  }();
  return all;
}

std::optional<std::string> rendered(const ChatTemplate& chat, const Json& request) {
  try {
    return chat.render(trtmc::chat_input_from_json(request, trtmc::parse_date("2026-09-04")));
  } catch (const trtmc::Error&) {
    return std::nullopt;  // The one way to refuse.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trtmc::FuzzInput input(data, size);
  const ChatTemplate& chat = templates()[input.below(templates().size())];
  Json request;
  try {
    request = Json::parse(input.rest());
  } catch (const trtmc::Error&) {
    return 0;
  }
  const std::optional<std::string> prompt = rendered(chat, request);
  TRTMC_CHECK(rendered(chat, request) == prompt, "a prompt that changes");
  TRTMC_CHECK(rendered(chat, Json::parse(request.dump())) == prompt,
              "a prompt that printing changes");
  TRTMC_CHECK(!prompt || !trtmc::find_invalid_utf8(*prompt), "a prompt that is not UTF-8");
  return 0;
}
