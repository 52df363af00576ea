// Templates from decisions: every input is a template that mostly parses, so that a fuzzer spends
// its time on what expressions mean. Shared by the target that looks for crashes and by the driver
// that asks jinja2 about the same templates (tests/differential).
#pragma once

#include <string>

#include "base/json.h"
#include "fuzz/fuzz_input.h"

namespace trtmc {

struct GeneratedTemplate {
  std::string source;
  Json::Object variables;
};

GeneratedTemplate generate_template(FuzzInput& input);

}  // namespace trtmc
