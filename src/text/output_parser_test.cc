#include "text/output_parser.h"

#include <gtest/gtest.h>

#include <random>

namespace trtmc {
namespace {

using Start = OutputParser::Start;

const OutputMarkers kMarkers = {"<think>", "</think>", "<tool_call>", "</tool_call>"};

struct Outcome {
  std::string reasoning, content;
  std::vector<ToolCall> calls;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  out << "reasoning \"" << outcome.reasoning << "\" content \"" << outcome.content << '"';
  for (const ToolCall& call : outcome.calls)
    out << " " << call.name << "(" << call.arguments << ")";
  return out;
}

void add(Outcome& outcome, const OutputDelta& delta) {
  outcome.reasoning += delta.reasoning;
  outcome.content += delta.content;
  outcome.calls.insert(outcome.calls.end(), delta.tool_calls.begin(), delta.tool_calls.end());
}

// `cuts`: for each border between two bytes, whether the text is cut there.
template <typename Cuts>
Outcome parse_cut(const std::string& text, Start start, bool tools, Cuts&& cuts) {
  OutputParser parser(kMarkers, start, tools);
  Outcome outcome;
  size_t begin = 0;
  for (size_t i = 1; i <= text.size(); ++i) {
    if (i < text.size() && !cuts(i)) continue;
    add(outcome, parser.append(std::string_view(text).substr(begin, i - begin)));
    begin = i;
  }
  add(outcome, parser.finish());
  return outcome;
}

// Whole, byte by byte, cut in two at every place, in three at many, and at random: one result.
Outcome parse(const std::string& text, Start start = Start::kTurn, bool tools = true) {
  const Outcome whole = parse_cut(text, start, tools, [](size_t) { return false; });
  EXPECT_EQ(parse_cut(text, start, tools, [](size_t) { return true; }), whole) << "byte by byte";
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(parse_cut(text, start, tools, [&](size_t i) { return i == cut; }), whole) << cut;
    const size_t other = cut * 7 % text.size();
    EXPECT_EQ(parse_cut(text, start, tools, [&](size_t i) { return i == cut || i == other; }),
              whole)
        << cut << " and " << other;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(parse_cut(text, start, tools, [&](size_t) { return random() % 4 == 0; }), whole);
  }
  return whole;
}

TEST(OutputParser, AThinkMarkerAtTheStartOfTheTurnOpensReasoning) {
  EXPECT_EQ(parse("<think>\nLet me see.\n</think>\nParis."),
            (Outcome{"Let me see.", "Paris.", {}}));
  EXPECT_EQ(parse("\n <think>a</think>b"), (Outcome{"a", "b", {}}));
  EXPECT_EQ(parse("<think>\n\na\n\n</think>\n\nb\n"), (Outcome{"\na\n", "b\n", {}}));
  EXPECT_EQ(parse("<think>\n\n</think>\nb"), (Outcome{"", "b", {}}));
  EXPECT_EQ(parse("<think>\n</think>b"), (Outcome{"", "b", {}}));
  EXPECT_EQ(parse("<think>a </thin </think>b"), (Outcome{"a </thin ", "b", {}}));
}

TEST(OutputParser, WithoutAThinkMarkerAllIsContent) {
  EXPECT_EQ(parse("Paris <think>no</think>."), (Outcome{"", "Paris <think>no</think>.", {}}));
  EXPECT_EQ(parse("<thin ice"), (Outcome{"", "<thin ice", {}}));
  EXPECT_EQ(parse(" \n Paris"), (Outcome{"", " \n Paris", {}}));
  EXPECT_EQ(parse("<thi"), (Outcome{"", "<thi", {}}));
  EXPECT_EQ(parse(""), Outcome{});
}

TEST(OutputParser, WithoutAClosingMarkerAllIsReasoning) {
  EXPECT_EQ(parse("<think>\nHm, </th\n"), (Outcome{"Hm, </th\n", "", {}}));
  EXPECT_EQ(parse("<think>"), Outcome{});
}

TEST(OutputParser, APromptThatClosedTheThinkMarkersMakesAllContent) {
  EXPECT_EQ(parse("\nParis </think> <think>x", Start::kContent),
            (Outcome{"", "\nParis </think> <think>x", {}}));
}

TEST(OutputParser, APromptThatOpenedTheThinkMarkerStartsInReasoning) {
  EXPECT_EQ(parse("Hm.\n</think>\nYes", Start::kReasoning), (Outcome{"Hm.", "Yes", {}}));
  EXPECT_EQ(parse("\nHm.</think>Yes", Start::kReasoning), (Outcome{"Hm.", "Yes", {}}));
}

TEST(OutputParser, StartComesFromTheEndOfThePrompt) {
  const auto start = [](std::string_view prompt) {
    return OutputParser::start_for_prompt(kMarkers, prompt);
  };
  EXPECT_EQ(start("<|im_start|>assistant\n"), Start::kTurn);
  EXPECT_EQ(start("<|im_start|>assistant\n<think>\n\n</think>\n"), Start::kContent);
  EXPECT_EQ(start("<|im_start|>assistant\n<think>\n"), Start::kReasoning);
  EXPECT_EQ(start("What does <think> mean?<|im_end|>\n<|im_start|>assistant\n"), Start::kTurn);
  EXPECT_EQ(start(""), Start::kTurn);
  EXPECT_EQ(OutputParser::start_for_prompt({}, "<think>"), Start::kTurn);
}

TEST(OutputParser, ReadsACallWithAndWithoutWhiteSpaceInTheBrackets) {
  const ToolCall call = {"get_weather", R"({"city": "Copenhagen"})"};
  EXPECT_EQ(
      parse("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Copenhagen\"}}\n"
            "</tool_call>"),
      (Outcome{"", "", {call}}));
  EXPECT_EQ(
      parse(R"(<tool_call>{"arguments":{"city": "Copenhagen"},"name":"get_weather"}</tool_call>)"),
      (Outcome{"", "", {call}}));
}

TEST(OutputParser, ReadsSeveralCallsAndTextAround) {
  const std::string a = R"(<tool_call>{"name":"a","arguments":{"x":1}}</tool_call>)";
  const std::string b = R"(<tool_call>{"name":"b","arguments":{}}</tool_call>)";
  const std::vector<ToolCall> calls = {{"a", R"({"x":1})"}, {"b", "{}"}};
  EXPECT_EQ(parse("Two calls.\n" + a + "\n" + b + "\nDone."),
            (Outcome{"", "Two calls.Done.", calls}));
  EXPECT_EQ(parse(a + b), (Outcome{"", "", calls}));
  EXPECT_EQ(parse("\n" + a + " \n\n" + b + "\n"), (Outcome{"", "", calls}));
  EXPECT_EQ(parse("one  two \n" + a + " \n three \n"),
            (Outcome{"", "one  twothree \n", {calls[0]}}));
}

TEST(OutputParser, ReadsCallsAfterReasoningButNotWithin) {
  const std::string call = R"(<tool_call>{"name":"a","arguments":{}}</tool_call>)";
  EXPECT_EQ(parse("<think>\nI could " + call + "\n</think>\n" + call),
            (Outcome{"I could " + call, "", {{"a", "{}"}}}));
  EXPECT_EQ(parse("<think>" + call), (Outcome{call, "", {}}));
}

TEST(OutputParser, PassesArgumentsThroughAsTheModelWroteThem) {
  const std::string arguments =
      R"({ "items": [{"id": 1, "s": "a}]\" \\"}, {"id": 2.50}],  "é": "\u00e9",)"
      "\n\t"
      R"("n": null, "t": true, "e": [] })";
  EXPECT_EQ(parse(R"(<tool_call>{"id": "x", "name": "f", "arguments": )" + arguments +
                  R"(, "more": -1e5}</tool_call>)"),
            (Outcome{"", "", {{"f", arguments}}}));
}

TEST(OutputParser, AStringOfArgumentsIsNotEncodedTwice) {
  EXPECT_EQ(parse(R"(<tool_call>{"name":"f","arguments":"{\"a\": \"\\u00e9\\n\"}"}</tool_call>)"),
            (Outcome{"", "", {{"f", R"({"a": "\u00e9\n"})"}}}));
}

TEST(OutputParser, MissingArgumentsAreAnEmptyObject) {
  EXPECT_EQ(parse(R"(<tool_call>{"name":"f"}</tool_call>)"), (Outcome{"", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse(R"(<tool_call>{"name":"f","arguments":null}</tool_call>)"),
            (Outcome{"", "", {{"f", "{}"}}}));
}

TEST(OutputParser, OfEqualKeysTheLastCounts) {
  EXPECT_EQ(
      parse(
          R"(<tool_call>{"name":"f","arguments":{"a":1},"arguments":{"b":2},"name":"g"}</tool_call>)"),
      (Outcome{"", "", {{"g", R"({"b":2})"}}}));
}

TEST(OutputParser, MarkersWithinJsonStringsAreText) {
  EXPECT_EQ(
      parse(R"(<tool_call>{"name":"f","arguments":{"s":"</tool_call><tool_call>"}}</tool_call>)"),
      (Outcome{"", "", {{"f", R"({"s":"</tool_call><tool_call>"})"}}}));
}

TEST(OutputParser, WhatIsMalformedIsContentByteForByte) {
  for (const std::string text : {
           "<tool_call>{test1,test2</tool_call>",
           "<tool_call> \n{\"name\": \"f\", \"arguments\": {}} x</tool_call> ",
           R"(a <tool_call>{"name": 1, "arguments": {}}</tool_call> b)",
           R"(<tool_call>{"name": "", "arguments": {}}</tool_call>)",
           R"(<tool_call>{"name": "f", "arguments": [1]}</tool_call>)",
           R"(<tool_call>{"arguments": {}}</tool_call>)",
           R"(<tool_call>[{"name": "f"}]</tool_call>)",
           R"(<tool_call>{"name": "f" "arguments": {}}</tool_call>)",
           R"(<tool_call>{"name": "f"}}</tool_call>)",
           R"(<tool_call>{"name": "f"])",
           R"(<tool_call>{"name": "f", "arguments": {"s": "\ud800"}}</tool_call>)",
           R"(<tool_call>{"name": "f", "arguments": {)",
           R"(<tool_call>{"name": "f"} </tool_ca)",
           "<tool_call>",
           "<tool_call> ",
           "x <tool_cal",
           "</tool_call> <tool_call></tool_call>",
           R"(<tool_call>{"name": "f\)",
       }) {
    EXPECT_EQ(parse(text), (Outcome{"", text, {}}));
  }
}

TEST(OutputParser, ACallAfterAMalformedOneIsRead) {
  const std::string good = R"(<tool_call>{"name":"b"}</tool_call>)";
  const std::vector<ToolCall> calls = {{"b", "{}"}};
  for (const std::string bad :
       {R"(<tool_call>{"name": "a", {</tool_call>)", R"(<tool_call>{"name": "a</tool_call>)",
        R"(<tool_call>)", R"(<tool_call>{"name": "a", "arguments": {"x": "<tool_call>)"}) {
    EXPECT_EQ(parse(bad + good), (Outcome{"", bad, calls}));
  }
}

TEST(OutputParser, MalformedCallsDoNotStallTheStream) {
  OutputParser parser(kMarkers, Start::kTurn, true);
  EXPECT_EQ(parser.append("<tool_call>{\"name\": \"f\"").content, "");
  EXPECT_EQ(parser.append("</").content, "<tool_call>{\"name\": \"f\"</");
}

TEST(OutputParser, ContentComesAsSoonAsItIsCertain) {
  OutputParser parser(kMarkers, Start::kTurn, true);
  EXPECT_EQ(parser.append("Hel").content, "Hel");
  EXPECT_EQ(parser.append("lo ").content, "lo");  // The space may belong to a call.
  EXPECT_EQ(parser.append("wo<to").content, " wo");
  EXPECT_EQ(parser.append("rld").content, "<torld");
}

TEST(OutputParser, ReasoningComesAsSoonAsItIsCertain) {
  OutputParser parser(kMarkers, Start::kTurn, true);
  EXPECT_EQ(parser.append("<think>\nHm").reasoning, "Hm");
  EXPECT_EQ(parser.append("\n").reasoning, "");
  EXPECT_EQ(parser.append("so </t").reasoning, "\nso ");
  EXPECT_EQ(parser.append("hink>a").content, "a");
}

TEST(OutputParser, WithoutParsingToolsTheirMarkersAreContent) {
  const std::string text = "x \n<tool_call>{\"name\":\"f\"}</tool_call>\n y ";
  EXPECT_EQ(parse("<think>a</think>" + text, Start::kTurn, false), (Outcome{"a", text, {}}));
}

TEST(OutputParser, AModelWithoutMarkersHasOnlyContent) {
  OutputParser parser({}, Start::kTurn, true);
  EXPECT_EQ(parser.append(" <think> <tool_call> ").content, " <think> <tool_call> ");
}

TEST(OutputParser, PythonCallsAreContent) {
  const std::string text = "<code>get_weather(city=\"Copenhagen\")</code>";
  EXPECT_EQ(parse(text), (Outcome{"", text, {}}));
}

// Every split of short texts that hold every kind of border.
TEST(OutputParser, EverySplitOfAShortTurnGivesTheSame) {
  const OutputMarkers markers = {"<", ">", "[", "]"};
  for (const std::string text : {"\n<\na\n>\n\n b \n[{\"name\":1}]", " <>a [{}] \n[\n]b"}) {
    const auto result = [&](size_t cuts) {
      OutputParser parser(markers, Start::kTurn, true);
      Outcome outcome;
      std::string piece;
      for (size_t i = 0; i < text.size(); ++i) {
        piece += text[i];
        if (cuts >> i & 1) add(outcome, parser.append(std::exchange(piece, "")));
      }
      add(outcome, parser.append(piece));
      add(outcome, parser.finish());
      return outcome;
    };
    const size_t free_bits = std::min<size_t>(text.size(), 11);
    for (size_t cuts = 0; cuts < (size_t{1} << free_bits); ++cuts) {
      ASSERT_EQ(result(cuts), result(0));
      ASSERT_EQ(result(cuts << (text.size() - free_bits)), result(0));
    }
  }
}

TEST(OutputParser, DeeplyNestedArgumentsAreRefusedNotFollowed) {
  const std::string text =
      "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(5000, '[') +
      std::string(5000, ']') + "}}</tool_call>";
  OutputParser parser(kMarkers, Start::kTurn, true);
  EXPECT_EQ(parser.append(text).content + parser.finish().content, text);
}

// Were each piece to look at all that is held, these would take minutes.
TEST(OutputParser, LooksAtEveryByteOfWhatItHoldsOnce) {
  const std::string open =
      "<tool_call>" + std::string(100000, '\n') + "{\"name\": \"f\", \"arguments\": {\"x\": \"";
  const std::string text = open + std::string(300000, 'x') + "\"}}" + std::string(100000, ' ');
  const auto everywhere = [](size_t) { return true; };
  const Outcome call = parse_cut(text + "</tool_call>", Start::kTurn, true, everywhere);
  ASSERT_EQ(call.calls.size(), 1U);
  EXPECT_EQ(call.calls[0].arguments.size(), 300000 + std::string_view("{\"x\": \"\"}").size());

  const std::string blanks(300000, ' ');
  EXPECT_EQ(parse_cut(blanks + "a", Start::kTurn, true, everywhere).content, blanks + "a");
  EXPECT_EQ(parse_cut("a" + blanks + "b", Start::kContent, true, everywhere).content,
            "a" + blanks + "b");
}

}  // namespace
}  // namespace trtmc
