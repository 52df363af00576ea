#include "cli/chat_session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace trtmc {
namespace {

using Kind = ChatSession::Step::Kind;

std::string dump(const ChatSession& session) { return Json(session.messages()).dump(); }

std::string failure(ChatSession& session, std::string_view line) {
  try {
    session.enter(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string temporary_file(std::string_view name) {
  return (std::filesystem::path(testing::TempDir()) / name).string();
}

TEST(ChatSession, AMessageAwaitsItsAnswer) {
  ChatSession session("Be brief.", {});
  EXPECT_EQ(session.enter("Hello").kind, Kind::kAnswer);
  session.answer("Hi.");
  EXPECT_EQ(session.enter("Bye").kind, Kind::kAnswer);
  EXPECT_EQ(dump(session),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"},)"
            R"({"role":"assistant","content":"Hi."},{"role":"user","content":"Bye"}])");
}

TEST(ChatSession, AnAnswerThatNeverCameTakesTheMessageBack) {
  ChatSession session({}, {});
  session.enter("Hello");
  session.answer("");
  EXPECT_TRUE(session.empty());
}

TEST(ChatSession, BlankLinesAreNoMessages) {
  ChatSession session({}, {});
  EXPECT_EQ(session.enter("").kind, Kind::kNothing);
  EXPECT_EQ(session.enter("  \t").kind, Kind::kNothing);
  EXPECT_TRUE(session.empty());
}

TEST(ChatSession, ABlankInFrontMakesACommandAMessage) {
  ChatSession session({}, {});
  EXPECT_EQ(session.enter(" /reset").kind, Kind::kAnswer);
  EXPECT_EQ(dump(session), R"([{"role":"user","content":"/reset"}])");
}

TEST(ChatSession, ReasoningIsSwitched) {
  ChatSession session({}, {});
  EXPECT_FALSE(session.think().has_value());
  EXPECT_EQ(session.enter("/think").text, "reasoning is on");
  EXPECT_EQ(session.think(), true);
  session.enter("/no_think");
  EXPECT_EQ(session.think(), false);
}

TEST(ChatSession, SystemReplacesAndRemoves) {
  ChatSession session("Old.", {});
  session.enter("/system  Be a pirate.");
  EXPECT_EQ(dump(session), R"([{"role":"system","content":"Be a pirate."}])");
  session.enter("/system");
  EXPECT_EQ(dump(session), "[]");
}

TEST(ChatSession, ResetKeepsTheSystemMessage) {
  ChatSession session("S", {});
  session.enter("Hello");
  session.answer("Hi");
  session.enter("/reset");
  EXPECT_EQ(dump(session), R"([{"role":"system","content":"S"}])");
}

TEST(ChatSession, SavedConversationsComeBack) {
  const std::string file = temporary_file("chat session.json");
  ChatSession session("S", {});
  session.enter("Hé \"you\"");
  session.answer("Hi\nthere");
  EXPECT_EQ(session.enter("/save " + file).text, "saved 3 messages to " + file);
  ChatSession other({}, {});
  other.enter("something else");
  EXPECT_EQ(other.enter("/load " + file).text, "loaded 3 messages");
  EXPECT_EQ(dump(other), dump(session));
  std::filesystem::remove(file);
}

TEST(ChatSession, AFileThatIsNoConversationLeavesThingsAsTheyAre) {
  const std::string file = temporary_file("no_conversation.json");
  ChatSession session({}, {});
  session.enter("Hello");
  session.answer("Hi");
  const std::string before = dump(session);
  for (const char* text :
       {"", "[]", "{}", R"({"messages":{}})", R"({"messages":[1]})",
        R"({"messages":[{"role":"user"}]})", R"({"messages":[{"role":"tool","content":"x"}]})",
        R"({"messages":[{"role":"user","content":null}]})", R"({"messages":[],"tools":[]})"}) {
    std::ofstream(file) << text;
    EXPECT_NE(failure(session, "/load " + file), "no error") << text;
    EXPECT_EQ(dump(session), before);
  }
  std::filesystem::remove(file);
}

TEST(ChatSession, CommandsAreCheckedByName) {
  ChatSession session({}, {});
  EXPECT_EQ(failure(session, "/rest"), "unknown command /rest");
  EXPECT_EQ(failure(session, "/reset now"), "/reset takes nothing after it");
  EXPECT_EQ(failure(session, "/save"), "/save needs the name of a file");
  EXPECT_EQ(session.enter("/exit").kind, Kind::kExit);
}

TEST(ChatSession, InvalidUtf8IsRefused) {
  ChatSession session({}, {});
  EXPECT_EQ(failure(session, "ab\xff"), "the message: byte 2 is not UTF-8");
  EXPECT_TRUE(session.empty());
}

}  // namespace
}  // namespace trtmc
