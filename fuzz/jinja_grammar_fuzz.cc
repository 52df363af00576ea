// Templates that mostly parse, made of the input's decisions: each renders or is refused, twice the
// same way, to UTF-8. What it should render is jinja2's to say: `jinja_driver --templates` gives
// the templates of a corpus to tests/differential/jinja_diff.py, which asks it.
#include <cstdint>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "fuzz/jinja_grammar.h"
#include "text/chat_template.h"

namespace {

// Parsed anew each time, as parsing folds constants.
std::optional<std::string> rendered(const trtmc::GeneratedTemplate& made) {
  trtmc::ChatInput input;
  input.messages = trtmc::Json::Array();
  input.template_kwargs = made.variables;
  input.local_time = trtmc::parse_date("2026-09-04");
  try {
    return trtmc::ChatTemplate(made.source).render(input);
  } catch (const trtmc::Error&) {
    return std::nullopt;  // The one way to refuse.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trtmc::FuzzInput input(data, size);
  const trtmc::GeneratedTemplate made = generate_template(input);
  const std::optional<std::string> text = rendered(made);
  TRTMC_CHECK(rendered(made) == text, "a text that changes");
  TRTMC_CHECK(!text || !trtmc::find_invalid_utf8(*text), "a text that is not UTF-8");
  return 0;
}
