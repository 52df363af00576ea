#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace trtmc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kSourceDir = TRTMC_SOURCE_DIR;
const std::string kNoThink = "<think>\n\n</think>\n";

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

const Json& goldens() {
  static const Json parsed =
      Json::parse(read_file(TRTMC_BINARY_DIR "/testdata/tests/golden/chat_goldens.json"));
  return parsed;
}

// The prompt for a request in the form of `trtmc prompt`, on 4 September 2026.
std::string prompt(std::string_view request) {
  return smollm3().render(chat_input_from_json(Json::parse(request), parse_date("2026-09-04")));
}

TEST(ChatTemplate, RendersEveryGoldenOfTransformersEnvironment) {
  const Json::Array& cases = *goldens().find("cases")->array();
  ASSERT_EQ(cases.size(), 24u);
  for (const Json& golden : cases) {
    SCOPED_TRACE(*golden.find("name")->string());
    EXPECT_EQ(smollm3().render(golden_input(golden)), *golden.find("rendered")->string());
  }
}

// The two sizes are public captures of the published template.
TEST(ChatTemplate, ThePinnedQuestionTakes1369BytesWithThinkingAnd297Without) {
  const std::string thinking = prompt(R"([{"role": "user", "content": "What is 2+2?"}])");
  EXPECT_EQ(thinking.size(), 1369u);
  EXPECT_THAT(thinking, EndsWith("<|im_start|>assistant\n"));
  const std::string direct = prompt(
      R"({"messages": [{"role": "user", "content": "What is 2+2?"}], "chat_template_kwargs": {"enable_thinking": false}})");
  EXPECT_EQ(direct.size(), 297u);
  EXPECT_THAT(direct, EndsWith("<|im_start|>assistant\n" + kNoThink));
}

TEST(ChatTemplate, ToolsPrintAsPythonDicts) {
  const std::string text = prompt(
      R"({"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function", "function": {"name": "f", "description": "it's é\n", "strict": true, "x": null, "y": 1e-7, "z": 18446744073709551616}}]})");
  EXPECT_THAT(text, HasSubstr("<tools>\n{'type': 'function', 'function': {'name': 'f', "
                              "'description': \"it's é\\n\", 'strict': True, 'x': None, "
                              "'y': 1e-07, 'z': 18446744073709551616}}\n</tools>"));
}

TEST(ChatTemplate, ACallWithoutContentLeavesAnEmptyTurn) {
  const std::string text = prompt(
      R"([{"role": "user", "content": "A"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]},
          {"role": "tool", "content": "sunny"}, {"role": "assistant", "tool_calls": []}])");
  EXPECT_THAT(text,
              EndsWith("<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
                       "<|im_start|>user\nsunny<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
                       "<|im_start|>assistant\n"));
}

TEST(ChatTemplate, TheSystemBlockStaysOpenWithoutTools) {
  const std::string text = prompt(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(text.find("<|im_end|>"), text.find("Hi<|im_end|>") + 2);
}

TEST(ChatTemplate, NullOrEmptyToolsOpenNoBlock) {
  EXPECT_THAT(prompt(R"({"messages": [{"role": "user", "content": "Hi"}], "tools": null})"),
              Not(HasSubstr("### Tools")));
  EXPECT_THAT(prompt(R"({"messages": [{"role": "user", "content": "Hi"}], "tools": []})"),
              Not(HasSubstr("### Tools")));
}

TEST(ChatTemplate, TheDateIsTheOneGivenInEnglishWhateverTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"C", "C.UTF-8", "de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;
    const std::string text = prompt(R"({"messages": [{"role": "user", "content": "ı I"}],
        "tools": [{"name": "f", "value": 1.5}]})");
    EXPECT_THAT(text, HasSubstr("Today Date: 04 September 2026\n")) << locale;
    EXPECT_THAT(text, HasSubstr("{'name': 'f', 'value': 1.5}")) << locale;
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST(ChatTemplate, SpecialTokensComeAsKwargs) {
  ChatInput input;
  input.messages = Json::Array();
  input.template_kwargs = {{"bos_token", "<s>"}, {"documents", Json::Array{"d"}}};
  EXPECT_EQ(ChatTemplate("{{ bos_token }}{{ eos_token }}{{ documents }}").render(input),
            "<s>['d']");
}

TEST(ChatTemplate, SpecialTokensOfTheModelGiveWayToKwargs) {
  ChatInput input;
  input.messages = Json::Array();
  const ChatTemplate text("{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}",
                          {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  EXPECT_EQ(text.render(input), "<s>|</s>|False");
  input.template_kwargs = {{"bos_token", "<mine>"}};
  EXPECT_EQ(text.render(input), "<mine>|</s>|False");
}

TEST(ChatTemplate, AbsentToolsAndDocumentsAreNone) {
  ChatInput input;
  input.messages = Json::Array();
  EXPECT_EQ(ChatTemplate("{{ tools }}{{ documents }}{{ add_generation_prompt }}").render(input),
            "NoneNoneTrue");
}

TEST(ChatTemplate, RefusesTextThatIsNotUtf8) {
  ChatInput input;
  input.messages = Json::Array{Json::Object{{"role", "user"}, {"content", std::string("a\xff")}}};
  EXPECT_THROW(smollm3().render(input), Error);
}

TEST(ChatTemplate, RendersTheSameEachTime) {
  const std::string request = R"([{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(prompt(request), prompt(request));
}

TEST(ChatInput, IsAnArrayOfMessagesOrAnObject) {
  const std::tm date = parse_date("2026-09-04");
  const auto array = chat_input_from_json(Json::parse(R"([{"role": "user"}])"), date);
  EXPECT_EQ(array.messages, Json::parse(R"([{"role": "user"}])"));
  EXPECT_TRUE(array.add_generation_prompt);
  EXPECT_TRUE(array.tools.is_null());
  EXPECT_TRUE(array.template_kwargs.empty());
  const auto object = chat_input_from_json(
      Json::parse(
          R"({"messages": [], "tools": [{"t": 1}], "add_generation_prompt": false, "chat_template_kwargs": {"a": 1}})"),
      date);
  EXPECT_EQ(object.tools, Json::parse(R"([{"t": 1}])"));
  EXPECT_FALSE(object.add_generation_prompt);
  EXPECT_EQ(object.template_kwargs, (Json::Object{{"a", 1}}));
}

TEST(ChatInput, IsRefusedByTheNameOfWhatIsWrong) {
  const auto refusal = [](std::string_view request) -> std::string {
    try {
      chat_input_from_json(Json::parse(request), {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("5"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("\"messages\" is missing"));
  EXPECT_THAT(refusal(R"(["text"])"), HasSubstr("messages[0]: a string, expected an object"));
  EXPECT_THAT(refusal(R"({"messages": {}})"), HasSubstr("messages: an object, expected an array"));
  EXPECT_THAT(refusal(R"({"messages": [], "tool": []})"), HasSubstr("tool: unknown key"));
  EXPECT_THAT(refusal(R"({"messages": [], "tools": {}})"), HasSubstr("tools: an object"));
  EXPECT_THAT(refusal(R"({"messages": [], "tools": [{}, 3]})"),
              HasSubstr("tools[1]: an integer, expected an object"));
  EXPECT_THAT(refusal(R"({"messages": [], "add_generation_prompt": 1})"),
              HasSubstr("add_generation_prompt: an integer"));
  EXPECT_THAT(refusal(R"({"messages": [], "chat_template_kwargs": {"tools": 1}})"),
              HasSubstr("chat_template_kwargs.tools: this name is taken"));
}

TEST(ParseDate, GivesNoonOfThatDay) {
  const std::tm time = parse_date("2024-02-29");
  EXPECT_EQ(time.tm_year, 124);
  EXPECT_EQ(time.tm_mon, 1);
  EXPECT_EQ(time.tm_mday, 29);
  EXPECT_EQ(time.tm_hour, 12);
  EXPECT_EQ(time.tm_wday, 4);  // A Thursday.
  EXPECT_EQ(time.tm_yday, 59);
}

TEST(ParseDate, RefusesWhatIsNoDay) {
  for (const char* text : {"", "2026-9-4", "2026-02-30", "2026-13-01", "2026-00-10", "2026-09-04 ",
                           "04-09-2026", "2026/09/04", "-026-09-04", "2026-09-+4", "0000-01-01"}) {
    EXPECT_THROW(parse_date(text), Error) << text;
  }
}

}  // namespace
}  // namespace trtmc
