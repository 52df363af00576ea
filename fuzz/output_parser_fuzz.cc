// A model's text in pieces: the first byte says how it starts and where it is cut; every cut gives
// what the whole text gives.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "text/output_parser.h"

namespace {

using trtmc::OutputDelta;
using trtmc::OutputParser;

void add(OutputDelta& all, OutputDelta delta) {
  all.reasoning += delta.reasoning;
  all.content += delta.content;
  for (auto& call : delta.tool_calls) all.tool_calls.push_back(std::move(call));
}

OutputDelta parse(std::string_view text, uint8_t mode, size_t piece) {
  OutputParser parser({"<think>", "</think>", "<tool_call>", "</tool_call>"},
                      static_cast<OutputParser::Start>(mode % 3), mode % 2 == 0);
  OutputDelta all;
  for (size_t i = 0; i < text.size(); i += piece) add(all, parser.append(text.substr(i, piece)));
  add(all, parser.finish());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const OutputDelta whole = parse(text, data[0], size);
  const OutputDelta cut = parse(text, data[0], 1 + data[0] / 6);
  if (whole.reasoning != cut.reasoning || whole.content != cut.content ||
      whole.tool_calls != cut.tool_calls) {
    std::abort();
  }
  return 0;
}
