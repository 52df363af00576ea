// However an answer's text is cut into tokens, a stream's pieces add up to what comes in one.
#include <gtest/gtest.h>

#include "server/chat_writer.h"
#include "tests/support/chat_choices.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using Start = OutputParser::Start;
using Cuts = std::vector<size_t>;  // Rising offsets within a text.

const OutputMarkers kMarkers = {"<think>", "</think>", "<tool_call>", "</tool_call>"};
// Short enough to try every split of a text with all of them.
const OutputMarkers kShortMarkers = {"<", ">", "[", "]"};

// What the embedded model wrote (tests/golden/smollm3-tiny/reference.json), and what is hard to
// cut.
const std::string kTexts[] = {
    "<think>\n7 plus 5 is 12.\n</think>\n7 + 5 = 12.",
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
    "<think>\nI ask.\n</think>\nSee: <tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"}</tool_"
    "call>\"}}</tool_call>\n<tool_call>\n{\"name\": \"g\"}\n</tool_call> 😀",
    "a <tool_call>{\"name\": \"f\", \"arguments\": []}</tool_call> 東京 <think>no</think>\n\n",
    "<think>\nnever ends 👩‍👩‍👧",
};

class ChatSplits : public testing::Test {
 protected:
  ChatAnswerOptions options(bool stream) const {
    const auto& model = embedded_server().model();
    return {.model = {std::shared_ptr<void>(), &model},
            .parser = OutputParser(markers_, Start::kTurn, true),
            .stream = {.stream = stream, .include_usage = stream}};
  }

  // Sends `text`, cut so, to a writer, as the task that reads an engine does.
  void send(AnswerWriter& writer, const std::string& text, const Cuts& cuts) const {
    AnswerBuilder builder(OutputParser(markers_, Start::kTurn, true));
    writer.begin();
    size_t begin = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const size_t end = i < cuts.size() ? cuts[i] : text.size();
      TokenEvent event;
      event.token = 1;
      event.text = text.substr(begin, end - begin);
      if (end == text.size()) event.finish = FinishReason::kStop;
      const Delta delta = builder.take(std::move(event));
      writer.add(0, delta);
      begin = end;
    }
    if (const Delta rest = builder.finish(); rest.has_text()) writer.add(0, rest);
    writer.end_choice(0, builder.answer());
    writer.end({});
  }

  ChatChoice whole(const std::string& text) const {
    const auto exchange = std::make_shared<FakeExchange>("POST", "/");
    send(*make_chat_writer(exchange, options(false)), text, {});
    return whole_choices(exchange->json()).at(0);
  }

  ChatChoice streamed(const std::string& text, const Cuts& cuts) const {
    const auto exchange = std::make_shared<FakeExchange>("POST", "/");
    send(*make_chat_writer(exchange, options(true)), text, cuts);
    return streamed_choices(exchange->events()).choices.at(0);
  }

  OutputMarkers markers_ = kMarkers;
};

// Where a text may be cut: tokens' text comes to the writers in whole code points.
Cuts borders(const std::string& text) {
  Cuts all;
  for (size_t i = 1; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) all.push_back(i);
  }
  return all;
}

TEST_F(ChatSplits, OneCutAnywhere) {
  for (const std::string& text : kTexts) {
    const ChatChoice expected = whole(text);
    for (const size_t cut : borders(text)) EXPECT_EQ(streamed(text, {cut}), expected) << cut;
  }
}

TEST_F(ChatSplits, TwoCutsAnywhere) {
  const std::string& text = kTexts[0];
  const ChatChoice expected = whole(text);
  const Cuts all = borders(text);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = i + 1; j < all.size(); ++j) {
      ASSERT_EQ(streamed(text, {all[i], all[j]}), expected) << all[i] << " and " << all[j];
    }
  }
}

TEST_F(ChatSplits, EveryCodePointOnItsOwn) {
  for (const std::string& text : kTexts) EXPECT_EQ(streamed(text, borders(text)), whole(text));
}

TEST_F(ChatSplits, EverySplitOfAShortAnswer) {
  markers_ = kShortMarkers;
  for (const std::string text : {"<\né\n>\nb", "a [x] b"}) {
    const Cuts all = borders(text);
    const ChatChoice expected = whole(text);
    for (size_t mask = 0; mask < size_t{1} << all.size(); ++mask) {
      Cuts cuts;
      for (size_t i = 0; i < all.size(); ++i) {
        if ((mask >> i & 1) != 0) cuts.push_back(all[i]);
      }
      ASSERT_EQ(streamed(text, cuts), expected) << text << ' ' << mask;
    }
  }
}

}  // namespace
}  // namespace trtmc
