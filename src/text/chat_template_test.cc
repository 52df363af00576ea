#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/file.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

const std::string kSourceDir = TRTMC_SOURCE_DIR;

const ChatTemplate& smollm3() {
  static const ChatTemplate chat(
      read_file(kSourceDir + "/tests/data/smollm3-3b/chat_template.jinja"));
  return chat;
}

// A golden's input holds the template's variables side by side.
ChatInput golden_input(const Json& golden) {
  ChatInput input;
  input.local_time = parse_date(*golden.find("date")->string());
  for (const auto& [name, value] : *golden.find("input")->object()) {
    if (name == "messages") {
      input.messages = value;
    } else if (name == "tools") {
      input.tools = value;
    } else if (name == "add_generation_prompt") {
      input.add_generation_prompt = *value.boolean();
    } else {
      input.template_kwargs.emplace_back(name, value);
    }
  }
  return input;
}

TEST(ChatTemplate, RendersEveryGoldenOfTransformersEnvironment) {
  const Json goldens = Json::parse(read_file(kSourceDir + "/tests/golden/chat_goldens.json"));
  const Json::Array& cases = *goldens.find("cases")->array();
  ASSERT_EQ(cases.size(), 24u);
  for (const Json& golden : cases) {
    SCOPED_TRACE(*golden.find("name")->string());
    EXPECT_EQ(smollm3().render(golden_input(golden)), *golden.find("rendered")->string());
  }
}

}  // namespace
}  // namespace trtmc
