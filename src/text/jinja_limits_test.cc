// Hostile templates end in an error with a place, soon and without much memory; so do broken ones.
#include "text/jinja_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace trtmc::jinja {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// "a0,a1," for the name "a", the end "," and two of them.
std::string numbered(const std::string& name, const std::string& end, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += name + std::to_string(i) + end;
  return result;
}

// Few enough to be used up soon in a debug build.
constexpr uint64_t kFewUnits = 200'000;

std::string render(const std::string& source, const Json::Object& variables = {},
                   uint64_t max_units = Meter::kMaxUnits) {
  const Template tree = parse(source);
  Dict values;
  for (const auto& [name, value] : variables) values.set(name, Value::from_json(value));
  return Interpreter(tree, values, parse_date("2026-09-04"), max_units).render();
}

// What the template is refused with.
Error refusal(const std::string& source, uint64_t max_units = Meter::kMaxUnits) {
  try {
    const std::string text = render(source, {}, max_units);
    ADD_FAILURE() << "rendered " << text.size() << " bytes: " << source.substr(0, 200);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "not refused"};
}

struct Hostile {
  const char* name;
  std::string source;
  const char* reason;
  uint64_t max_units = Meter::kMaxUnits;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileTemplate : public testing::TestWithParam<Hostile> {};

TEST_P(HostileTemplate, IsRefusedWithItsPlace) {
  const std::clock_t start =
      std::clock();  // Of the processor, so that a busy machine does not count.
  const Error error = refusal(GetParam().source, GetParam().max_units);
  EXPECT_THAT(error.what(), HasSubstr(GetParam().reason));
  EXPECT_THAT(error.what(), StartsWith("line "));
  // A bound against hanging, wide enough for a debug build under a sanitizer.
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 20);
}

INSTANTIATE_TEST_SUITE_P(
    Limits, HostileTemplate,
    testing::Values(
        Hostile{"repetition", "{{ 'a' * 1000000000 }}", "too long"},
        Hostile{"repetition_of_repetition", "{{ ('a' * 60000000) * 60000000 }}", "too long"},
        Hostile{"list_repetition", "{{ [1] * 1000000000 }}", "too long"},
        Hostile{"doubling", "{% set s = 'a' * 60000000 %}{{ (s + s)|length }}", "too long"},
        Hostile{"doubling_by_tilde", "{% set s = 'a' * 60000000 %}{{ (s ~ s)|length }}",
                "too long"},
        Hostile{"doubling_by_replace", "{% set s = 'a' * 10000 %}{{ s.replace('a', s)|length }}",
                "too long"},
        Hostile{"doubling_by_join",
                "{% set s = 'a' * 30000000 %}{{ s.join(['', '', '', ''])|length }}", "too long"},
        Hostile{"output", "{% set s = 'a' * 60000000 %}{{ s }}{{ s }}", "prints too much"},
        Hostile{"range", "{{ range(1000000000) }}", "at most 100000"},
        Hostile{"range_beyond", "{{ range(-9223372036854775807, 9223372036854775807) }}",
                "too big"},
        Hostile{"steps",
                "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
                "too many steps", kFewUnits},
        Hostile{"endless_macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply"},
        Hostile{"endless_caller",
                "{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{{ m() }}",
                "too deeply"},
        Hostile{"endless_recursive_loop",
                "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
                "too deeply"},
        Hostile{"brackets", "{{ " + repeated("(", 10000) + "1" + repeated(")", 10000) + " }}",
                "too deeply"},
        Hostile{"lists", "{{ " + repeated("[", 10000) + repeated("]", 10000) + " }}", "too deeply"},
        Hostile{"nots", "{{ " + repeated("not ", 10000) + "x }}", "too deeply"},
        Hostile{"minuses", "{{ " + repeated("-", 10000) + "1 }}", "too deeply"},
        Hostile{"sums", "{{ 1" + repeated(" + 1", 10000) + " }}", "too deeply"},
        Hostile{"filters", "{{ 1" + repeated("|abs", 10000) + " }}", "too deeply"},
        Hostile{"attributes", "{{ x" + repeated(".x", 10000) + " }}", "too deeply"},
        Hostile{"calls", "{{ x" + repeated("()", 10000) + " }}", "too deeply"},
        Hostile{"ternaries", "{{ 1" + repeated(" if 1 else 1", 10000) + " }}", "too deeply"},
        Hostile{"ifs", repeated("{% if x %}", 10000), "too deeply"},
        Hostile{"named_arguments", "{{ f(" + numbered("a", "=1,", 100'000) + ") }}", "too many"},
        Hostile{"parameters", "{% macro m(" + numbered("a", ",", 100'000) + "z) %}{% endmacro %}",
                "too many"},
        Hostile{"nested_value",
                "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% "
                "endfor %}",
                "nested too deeply"},
        Hostile{"nested_dict",
                "{% set ns = namespace(l=1) %}{% for i in range(1000) %}{% set ns.l = {'a': ns.l} "
                "%}{% endfor %}",
                "nested too deeply"},
        Hostile{"nested_method",
                "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = "
                "[ns.l.count] %}{% endfor %}",
                "nested too deeply"},
        Hostile{"wide_value",
                "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] "
                "%}{% endfor %}{{ ns.l }}",
                "too many steps", kFewUnits},
        Hostile{
            "wide_comparison",
            "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(99) "
            "%}{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}",
            "too many steps"},
        Hostile{"namespace_in_itself", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
                "too deeply"},
        Hostile{"json_of_wide_value",
                "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] "
                "%}{% endfor %}{{ ns.l|tojson }}",
                "too many steps", kFewUnits},
        Hostile{"padding", "{{ 'a'.center(1000000000000) }}", "too long"},
        Hostile{"format_width", "{{ '%1000000000d' % 1 }}", "too large"},
        Hostile{"format_precision", "{{ '{:.100000f}'.format(1.5) }}", "too large"},
        Hostile{"indent", "{{ ('a\\n' * 20000)|indent(10000)|length }}", "too long"},
        Hostile{"batch_fill", "{{ [1]|batch(100000000000, 0) }}", "too long"},
        Hostile{"slow_find",
                "{% set a = 'a' * 3000000 %}{% for i in range(100000) %}{{ (a ~ 'b') in a }}{% "
                "endfor %}",
                "too many steps", kFewUnits},
        Hostile{"slow_index",
                "{% set a = 'é' * 1000000 %}{% for i in range(100000) %}{{ a[-1] }}{% endfor %}",
                "too many steps", kFewUnits},
        Hostile{"slow_strip",
                "{% set a = 'abcdefgh' * 100000 %}{% for i in range(100000) %}{{ "
                "a.strip('hgfedcba')|length }}{% endfor %}",
                "too many steps", kFewUnits},
        Hostile{"power", "{{ 9 ** 99999999999999 }}", "64 bits"},
        Hostile{"overflow", "{{ 9223372036854775807 + 1 }}", "64 bits"},
        Hostile{"smallest_divided", "{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
        Hostile{"smallest_negated", "{{ (-9223372036854775807 - 1)|abs }}", "64 bits"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(JinjaLimits, TheSmallestIntegerHasARestByMinusOne) {
  EXPECT_EQ(render("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
}

TEST(JinjaLimits, ASliceStepsBackByTheSmallestInteger) {  // As CPython, which clamps the step.
  EXPECT_EQ(render("{{ 'abc'[::-9223372036854775807 - 1] }}"), "c");
  EXPECT_EQ(render("{{ range(0, 5)[::-9223372036854775807 - 1] | list }}"), "[4]");
}

TEST(JinjaLimits, PaddingToTheSmallestIntegerLeavesTheText) {
  EXPECT_EQ(render("{{ 'ab'.center(-9223372036854775807 - 1) }}"), "ab");
  EXPECT_EQ(render("{{ '-1'.zfill(-9223372036854775807 - 1) }}"), "-1");
}

TEST(JinjaLimits, ARangeThatEndsBeyondTheLargestIntegerIsRefused) {
  EXPECT_EQ(refusal("{{ range(1, 5)[::9223372036854775807][:] | list }}").code(),
            ErrorCode::kUnsupported);
}

// Each branch must cost what it does itself and not what stands outside of it.
TEST(JinjaLimits, ManyBranchesAmongManyNamesAreSoonAnalysed) {
  constexpr int kCount = 20'000;
  std::string source = numbered("{% set a", " = 1 %}", kCount);
  source += repeated("{% if a1 %}{% elif a2 %}{% else %}{% endif %}", kCount);
  EXPECT_EQ(render(source + "{{ a0 }}"), "1");
}

TEST(JinjaLimits, LargeIntegersDivideWhereADoubleHoldsThem) {
  EXPECT_EQ(render("{{ 1000000000000000000 / 100 }}"), "1e+16");  // From CPython.
  EXPECT_THAT(refusal("{{ 9007199254740993 / 2 }}").what(), HasSubstr("64 bits"));
}

TEST(JinjaLimits, LongChainsOfKeptLoopsAndNamespacesAreLetGoWithoutRecursion) {
  EXPECT_EQ(render("{% set ns = namespace(l=0) %}{% for i in range(20000) %}{% for x in [ns.l] %}"
                   "{% set ns.l = loop %}{% endfor %}{% endfor %}{{ ns.l.index }}"),
            "1");
  EXPECT_EQ(render("{% set ns = namespace(a=0) %}{% for i in range(20000) %}"
                   "{% set ns.a = namespace(a=ns.a) %}{% endfor %}x"),
            "x");
}

TEST(JinjaLimits, CirclesThroughMacrosAndNamespacesAreFreed) {  // Told by the leak sanitizer.
  EXPECT_EQ(render("{% set ns = namespace() %}{% macro m() %}{{ ns.x }}{% endmacro %}"
                   "{% set ns.m = m %}{% set ns.n = ns %}{% set ns.x = 1 %}{{ ns.m() }}"),
            "1");
  EXPECT_THAT(
      refusal("{% for x in [1] %}{{ loop.changed([loop]) }}{{ 1 // 0 }}{% endfor %}").what(),
      HasSubstr("division by zero"));
}

TEST(JinjaLimits, AMegabyteOfContentIsNoHostileCase) {
  const std::string content(1 << 20, 'x');
  EXPECT_EQ(render("{% set c = s.strip() %}{{ c.split('</think>')[-1].lstrip('\\n') + '\\n' }}",
                   {{"s", content}}),
            content + "\n");
}

struct Place {
  std::string source;
  const char* place;
};

void PrintTo(const Place& place, std::ostream* out) { *out << place.place; }

class ErrorPlace : public testing::TestWithParam<Place> {};

TEST_P(ErrorPlace, IsLineAndColumn) {
  EXPECT_THAT(refusal(GetParam().source).what(), StartsWith(GetParam().place));
}

INSTANTIATE_TEST_SUITE_P(
    Errors, ErrorPlace,
    testing::Values(Place{"a\nb {{ x $ }}", "line 2, column 8: "},
                    Place{"\r\n\r\n  {{ x|nope }}", "line 3, column 8: the filter 'nope' "},
                    Place{"{% include 'a' %}", "line 1, column 4: the statement 'include' "},
                    Place{"x\n{{ 1 is nope }}", "line 2, column 9: the test 'nope' "},
                    Place{"\n{{ x.y }}", "line 2, column 5: 'x' is undefined"},
                    Place{"{{ 1 }}{{ 'a' + 1 }}", "line 1, column 15: "},
                    Place{"{% if true %}\n\n {{ raise_exception('no way') }}{% endif %}",
                          "line 3, column 20: no way"},
                    Place{"{{ 'a'.casefold() }}", "line 1, column 16: the method str.casefold() "},
                    Place{"{{ 'abc }}", "line 1, column 4: "},
                    Place{"\n{# abc", "line 2, column 1: "},
                    Place{"{% if x %}", "line 1, column 11: "},
                    Place{"{{ namé }}", "line 1, column 7: "}));

TEST(JinjaErrors, WhatWeCanNotDoIsUnsupportedAndTheRestInvalid) {
  EXPECT_EQ(refusal("{{ x|xmlattr }}").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("{% extends 'x' %}").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("{{ 'a'.encode() }}").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("{{ strftime_now('%Q') }}").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("{{ 1 // 0 }}").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal("{{ 1 + }}").code(), ErrorCode::kInvalidArgument);
}

TEST(JinjaErrors, ATemplateMustBeUtf8AndOfModestSize) {
  EXPECT_THROW(ChatTemplate("a\xff"), Error);
  EXPECT_THROW(ChatTemplate(std::string(kMaxSourceBytes + 1, 'x')), Error);
}

}  // namespace
}  // namespace trtmc::jinja
