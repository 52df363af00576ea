// Reads lines from the terminal with editing and a history that is kept between programs.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace trtmc {

class LineEditor {
 public:
  // `history` may be empty: then nothing is kept.
  explicit LineEditor(std::filesystem::path history);
  ~LineEditor();  // Saves the history.

  struct Line {
    enum class Kind { kText, kInterrupt, kEnd };  // Enter, Ctrl-C, Ctrl-D.
    Kind kind;
    std::string text;          // Without its newline; lines joined where one ended in a backslash.
    bool typed_ahead = false;  // Its first key was hit before the prompt showed.
  };
  Line read();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
