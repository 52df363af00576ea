// A conversation's state, apart from terminal and model: its messages, its settings, and the
// commands that change them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trtmc {

class ChatSession {
 public:
  // What a line that the user entered leads to.
  struct Step {
    enum class Kind { kNothing, kAnswer, kSay, kExit };
    Kind kind;
    std::string text;  // Of kSay.
  };

  ChatSession(std::optional<std::string> system, std::optional<bool> think);

  // A message of the user's, which then awaits its answer, or a command such as "/reset". A message
  // may begin with "/" after a blank. Throws for a command that fails; the conversation stays.
  Step enter(std::string_view line);

  // The model's answer to the last message, without its reasoning: what stands in the history.
  // Empty: there was none, and the message is taken back.
  void answer(std::string_view content);

  // System message (if any), then the turns.
  Json::Array messages() const;
  bool empty() const { return turns_.empty(); }
  // Nothing: as the template has it.
  std::optional<bool> think() const { return think_; }

 private:
  Step run_command(std::string_view name, std::string_view argument);
  std::string set_system(std::string_view text);
  std::string save(const std::filesystem::path& file) const;
  std::string load(const std::filesystem::path& file);

  std::optional<std::string> system_;
  std::optional<bool> think_;
  Json::Array turns_;  // User and assistant.
};

}  // namespace trtmc
