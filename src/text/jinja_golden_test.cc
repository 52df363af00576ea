// Small templates of every feature against what jinja2 renders (tools/make_jinja_goldens.py).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/chat_template.h"
#include "text/jinja_predicates.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

const Json& goldens() {
  static const Json parsed =
      Json::parse(read_file(TRTMC_BINARY_DIR "/testdata/tests/golden/jinja_goldens.json"));
  return parsed;
}

std::optional<std::string> rendered(const std::string& source, std::string* error) {
  ChatInput input;
  input.messages = Json::Array();
  input.add_generation_prompt = false;
  input.template_kwargs = *goldens().find("variables")->object();
  input.local_time = parse_date(*goldens().find("date")->string());
  try {
    return ChatTemplate(source).render(input);
  } catch (const Error& refused) {
    *error = refused.what();
    return std::nullopt;
  }
}

TEST(JinjaGoldens, EveryTemplateRendersAsJinja2DoesOrIsRefusedToo) {
  const Json::Array& cases = *goldens().find("cases")->array();
  ASSERT_GT(cases.size(), 300u);
  for (const Json& golden : cases) {
    const std::string& source = *golden.find("template")->string();
    const Json& want = *golden.find("rendered");
    std::string error;
    const auto got = rendered(source, &error);
    EXPECT_EQ(got, want.is_null() ? std::nullopt : std::optional(*want.string())) << source << "\n"
                                                                                  << error;
    if (!got) {
      EXPECT_EQ(error.substr(0, 5), "line ") << source << ": " << error;
      EXPECT_NE(error.find(", column "), std::string::npos) << source << ": " << error;
    }
  }
}

std::string predicates(std::string_view text) {
  std::string bits;
  for (const auto holds : {is_alpha, is_decimal, is_digit, is_numeric, is_alnum, is_space,
                           is_printable, is_lower, is_upper, is_title}) {
    bits += holds(text) ? '1' : '0';
  }
  return bits;
}

class EveryCodePoint : public testing::TestWithParam<const char*> {};

TEST_P(EveryCodePoint, IsTreatedAsCPythonTreatsIt) {
  using Convert = std::function<std::string(const std::string&)>;
  const std::map<std::string, Convert> conversions = {
      {"repr", repr_string},
      {"upper", upper},
      {"lower", lower},
      {"title", title},
      {"capitalize", capitalize},
      {"swapcase", swapcase},
      {"strip", [](const std::string& c) { return "x" + std::string(strip(c, kBoth)) + "x"; }},
      {"is", predicates},
      {"final_sigma", [](const std::string& c) { return lower("A" + c + "Σ" + c + "a"); }},
  };
  const Convert& convert = conversions.at(GetParam());
  std::string all;
  for (char32_t value = 0; value <= 0x10FFFF; value += value < 0x20000 ? 1 : 257) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string character;
    append_utf8(character, value);
    all += convert(character);
    all += '\n';
  }
  EXPECT_EQ(to_hex(sha256(as_bytes(all))),
            *goldens().find("code_points")->find(GetParam())->string());
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryCodePoint,
                         testing::Values("repr", "upper", "lower", "title", "capitalize",
                                         "swapcase", "strip", "is", "final_sigma"));

}  // namespace
}  // namespace trtmc::jinja
