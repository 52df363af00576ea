#include "fuzz/jinja_grammar.h"

#include <array>
#include <string_view>

namespace trtmc {
namespace {

using W = std::string_view;  // A word of a table.

constexpr int kMostDepth = 4;

constexpr std::array kNames = {W("s"), W("t"),    W("i"),    W("f"), W("b"), W("z"),    W("l"),
                               W("d"), W("rows"), W("nest"), W("x"), W("u"), W("undef")};
constexpr std::array kTexts = {
    W(""),           W("a"),   W("l"),    W("Hello World"),  W("it's"), W(" x "),
    W("a,b,,c"),     W("\\n"), W("ß"),    W("Σας"),          W("日本"), W("🙂"),
    W("<b>&"),       W("12"),  W("-7"),   W("0x1F"),         W("2.50"), W("%s"),
    W("{}"),         W("aaa"), W("role"), W("\\x41\\u00e9"), W("ǅ"),    W("%5.1f|%-4s"),
    W("{:>8}|{0!r}")};
constexpr std::array kNumbers = {W("0"),   W("1"),    W("2"),    W("3"),    W("-1"),    W("10"),
                                 W("0.5"), W("2.5"),  W("1e3"),  W("0x1f"), W("1_000"), W("0b11"),
                                 W("255"), W("-2.5"), W("1e16"), W("0.1")};
constexpr std::array kLiterals = {W("true"),
                                  W("false"),
                                  W("none"),
                                  W("[]"),
                                  W("{}"),
                                  W("()"),
                                  W("(1,)"),
                                  W("[3, 1, 2]"),
                                  W("['b', 'A']"),
                                  W("{'a': 1}"),
                                  W("range(4)"),
                                  W("dict(a=1, b='x')"),
                                  W("[[1, 2], [0]]"),
                                  W("'<b>'|safe"),
                                  W("namespace(a=1).a")};
constexpr std::array kOperators = {W("+"),  W("-"),  W("*"),      W("/"),   W("//"), W("%"),
                                   W("~"),  W("=="), W("!="),     W("<"),   W("<="), W(">"),
                                   W(">="), W("in"), W("not in"), W("and"), W("or")};
// Filters with what follows; those that make an iterator are made a list, as it prints an address.
constexpr std::array kFilters = {W("upper"),
                                 W("lower"),
                                 W("title"),
                                 W("capitalize"),
                                 W("trim"),
                                 W("length"),
                                 W("first"),
                                 W("last"),
                                 W("list"),
                                 W("string"),
                                 W("int"),
                                 W("float"),
                                 W("abs"),
                                 W("round"),
                                 W("round(1)"),
                                 W("round(0, 'ceil')"),
                                 W("sort"),
                                 W("sort(reverse=true)"),
                                 W("sort(attribute='n')"),
                                 W("reverse|list"),
                                 W("unique|list"),
                                 W("items|list"),
                                 W("dictsort"),
                                 W("tojson"),
                                 W("tojson(indent=2)"),
                                 W("tojson(ensure_ascii=true)"),
                                 W("tojson(sort_keys=true)"),
                                 W("safe"),
                                 W("escape"),
                                 W("sum"),
                                 W("sum(attribute='n')"),
                                 W("min"),
                                 W("max"),
                                 W("wordcount"),
                                 W("default('x')"),
                                 W("default('x', true)"),
                                 W("join"),
                                 W("join(', ')"),
                                 W("join(',', attribute='role')"),
                                 W("urlencode"),
                                 W("map('upper')|list"),
                                 W("map(attribute='role')|list"),
                                 W("map('int')|list"),
                                 W("select|list"),
                                 W("select('string')|list"),
                                 W("reject('none')|list"),
                                 W("selectattr('role', 'eq', 'user')|list"),
                                 W("rejectattr('n')|list"),
                                 W("groupby('role')|map(attribute='list')|list"),
                                 W("batch(2, 'f')|list"),
                                 W("slice(2)|list"),
                                 W("attr('a')"),
                                 W("format(1, 2)"),
                                 W("indent(2, true)"),
                                 W("replace('l', 'LL', 1)"),
                                 W("truncate(5)"),
                                 W("truncate(7, true, '..', 0)"),
                                 W("center(9)")};
constexpr std::array kTests = {
    W("defined"), W("none"),  W("string"),  W("number"),       W("integer"),        W("float"),
    W("boolean"), W("true"),  W("mapping"), W("sequence"),     W("iterable"),       W("callable"),
    W("odd"),     W("even"),  W("upper"),   W("lower"),        W("divisibleby(2)"), W("eq('a')"),
    W("lt(3)"),   W("ge(2)"), W("in(l)"),   W("sameas(none)"), W("filter"),         W("escaped")};
constexpr std::array kMethods = {W("upper()"),
                                 W("title()"),
                                 W("swapcase()"),
                                 W("strip()"),
                                 W("strip('Hd ')"),
                                 W("split()"),
                                 W("split('l', 1)"),
                                 W("rsplit(none, 1)"),
                                 W("splitlines(true)"),
                                 W("replace('l', '')"),
                                 W("startswith(('x', 'H'))"),
                                 W("endswith('l', 0, 3)"),
                                 W("find('l', 4)"),
                                 W("rfind('o')"),
                                 W("index('o')"),
                                 W("count('')"),
                                 W("join(['a', 'b'])"),
                                 W("isdigit()"),
                                 W("isupper()"),
                                 W("istitle()"),
                                 W("zfill(5)"),
                                 W("removeprefix('He')"),
                                 W("center(16, '*')"),
                                 W("ljust(4, '.')"),
                                 W("partition('o')"),
                                 W("format(1, x=2)"),
                                 W("get('a')"),
                                 W("get('zz', 1)"),
                                 W("items()|list"),
                                 W("keys()|list"),
                                 W("pop()"),
                                 W("append(1)"),
                                 W("nope()")};
constexpr std::array kLookups = {W("[0]"),  W("[-1]"),      W("['a']"),  W(".a"),    W(".role"),
                                 W("[i]"),  W("[1:]"),      W("[::-1]"), W("[:-1]"), W("[undef]"),
                                 W(".x.y"), W("['items']"), W("[99]"),   W("[::2]"), W("[none:2]")};

template <typename Table>
std::string pick(FuzzInput& input, const Table& table) {
  return std::string(table[input.below(table.size())]);
}

std::string quoted(FuzzInput& input) { return '"' + pick(input, kTexts) + '"'; }

std::string atom(FuzzInput& input) {
  switch (input.below(6)) {
    case 0:
      return quoted(input);
    case 1:
      return pick(input, kNumbers);
    case 2:
      return pick(input, kLiterals);
    default:
      return pick(input, kNames);
  }
}

// Each part takes its decisions when it is made, so parts are made one after the other: the order
// within an expression of C++ is the compiler's.
std::string expression(FuzzInput& input, int depth) {
  if (depth == 0) return atom(input);
  const auto inner = [&] { return expression(input, depth - 1); };
  std::string text;
  const auto add_group = [&] { (text += "(") += inner() + ")"; };
  switch (input.below(14)) {
    case 0:
    case 1:
      text = inner();
      text += " " + pick(input, kOperators) + " ";
      return text += inner();
    case 2:
      add_group();
      text += " " + pick(input, kOperators) + " ";
      add_group();
      return text;
    case 3:
    case 4:
    case 5:
      add_group();
      return text += "|" + pick(input, kFilters);
    case 6:
      add_group();
      text += input.chance() ? " is not " : " is ";
      return text += pick(input, kTests);
    case 7:
      add_group();
      return text += "." + pick(input, kMethods);
    case 8:
      add_group();
      return text += pick(input, kLookups);
    case 9:
      text = inner();
      text += " if " + inner();
      if (input.chance()) text += " else " + inner();
      return text;
    case 10:
      text = input.chance() ? "not " : "-";
      add_group();
      return text;
    case 11:
      text = quoted(input);
      text += input.chance() ? " % (" : ".format(";
      text += atom(input);
      return text += ", " + atom(input) + ")";
    case 12:
      text = "[" + inner();
      return text += ", " + inner() + "]";
    default:
      text = "{" + quoted(input);
      return text += ": " + inner() + "}";
  }
}

std::string statement(FuzzInput& input, int depth) {
  std::string text;
  const auto add_value = [&] {
    const int its_depth = static_cast<int>(input.below(kMostDepth));
    text += expression(input, its_depth);
  };
  const auto add_body = [&] {
    if (depth > 0) {
      text += statement(input, depth - 1);
    } else {
      text += "{{ ";
      add_value();
      text += " }}";
    }
  };
  switch (input.below(9)) {
    case 0:
      text = "{% set x = ";
      add_value();
      text += " %}";
      add_body();
      return text;
    case 1:
      text = "{% if ";
      add_value();
      text += " %}";
      add_body();
      text += "{% else %}";
      add_body();
      return text += "{% endif %}";
    case 2:
      text = "{% for x in ";
      add_value();
      text += " %}{{ loop.index }}";
      add_body();
      return text += "{% else %}-{% endfor %}";
    case 3:
      text = "{%- for x in ";
      add_value();
      text += " if ";
      add_value();
      text += " -%} ";
      add_body();
      return text += " {%- endfor %}";
    case 4:
      text = "{% macro m(x, u=1) %}";
      add_body();
      text += "{% endmacro %}{{ m(";
      add_value();
      return text += ") }}";
    case 5:
      text = "{% set x %}";
      add_body();
      text += "{% endset %}{{ x|length }}";
      add_body();
      return text;
    case 6:
      text = "{% set ns = namespace(v=0) %}{% for u in rows %}{% set ns.v = ";
      add_value();
      text += " %}{% endfor %}{{ ns.v }}";
      add_body();
      return text;
    default:
      text = "{{ ";
      add_value();
      return text += " }}";
  }
}

}  // namespace

GeneratedTemplate generate_template(FuzzInput& input) {
  const Json rows = Json::parse(
      R"([{"role": "user", "content": "Hi", "n": 2}, {"role": "assistant", "content": null, "n": 1},
          {"role": "user", "content": "héllo", "n": 2.5, "x": {"y": [1]}}])");
  const Json nest =
      Json::parse(R"({"x": {"y": [{"z": 1}]}, "k y": "v", "a": [1, "a", null, true]})");
  GeneratedTemplate made;
  made.variables = {{"s", "Hello World"}, {"t", "b\tA  c\n"}, {"i", 7},
                    {"f", 2.5},           {"b", true},        {"z", nullptr}};
  made.variables.emplace_back("l", Json::Array{"b", "A", "", "a", 3, nullptr});
  made.variables.emplace_back("d", Json::parse(R"({"b": [1, 2], "a": 1, "items": 3})"));
  made.variables.emplace_back("rows", rows);
  made.variables.emplace_back("nest", nest);
  made.source = statement(input, static_cast<int>(input.below(3)));
  return made;
}

}  // namespace trtmc
