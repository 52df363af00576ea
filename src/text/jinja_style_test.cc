// Templates in the styles of published ones against what jinja2 renders
// (tools/make_template_goldens.py).
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace trtmc {
namespace {

const std::string kTemplates = TRTMC_SOURCE_DIR "/tests/golden/templates/";

const Json& goldens() {
  static const Json parsed =
      Json::parse(read_file(TRTMC_BINARY_DIR "/testdata/tests/golden/template_goldens.json"));
  return parsed;
}

ChatInput to_input(const Json& conversation) {
  ChatInput input;
  input.local_time = parse_date(*goldens().find("date")->string());
  for (const auto& [name, value] : *conversation.object()) {
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

std::optional<std::string> rendered(const ChatTemplate& chat, const ChatInput& input,
                                    std::string* error) {
  try {
    return chat.render(input);
  } catch (const Error& refused) {
    *error = refused.what();
    return std::nullopt;
  }
}

class TemplateStyle : public testing::TestWithParam<const char*> {};

TEST_P(TemplateStyle, RendersEveryConversationAsJinja2DoesOrRefusesItToo) {
  const ChatTemplate chat(read_file(kTemplates + GetParam() + ".jinja"));
  const Json::Object& results = *goldens().find("rendered")->find(GetParam())->object();
  ASSERT_GT(results.size(), 20u);
  for (const auto& [name, want] : results) {
    std::string error;
    const auto got = rendered(chat, to_input(*goldens().find("conversations")->find(name)), &error);
    EXPECT_EQ(got, want.is_null() ? std::nullopt : std::optional(*want.string()))
        << name << ": " << error;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, TemplateStyle,
                         testing::Values("chatml", "command_r", "deepseek_r1", "features", "gemma",
                                         "granite", "hermes", "llama3", "mistral", "phi", "qwen",
                                         "zephyr"),
                         [](const auto& style) { return std::string(style.param); });

}  // namespace
}  // namespace trtmc
