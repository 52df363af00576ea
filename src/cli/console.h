// The program's three streams. Standard output carries the answer and nothing else; a write to it
// that fails is an Error. Everything else goes to standard error.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace trtmc {

struct LogOptions {
  bool quiet = false;
  bool verbose = false;
  std::filesystem::path file;  // Empty: standard error.
  LogFormat format = LogFormat::kText;
};

// Where a command's text comes from: an argument, else a file, else standard input.
struct TextSource {
  std::optional<std::string> argument;
  std::filesystem::path file;
};

// The reader of standard output has gone away: the command ends quietly, as by SIGPIPE.
class OutputClosed : public std::exception {};

class Console {
 public:
  // File descriptors, so that tests can look.
  explicit Console(int out = 1, int err = 2);

  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }

  // The answer. Exact bytes in a pipe or a file; on a terminal, control characters other than
  // newline and tab are shown as escapes, since text of a model or a file could otherwise command
  // the terminal. Throws OutputClosed, or kExhausted when the disk is full.
  void print(std::string_view text);
  void print_json(const Json& json);  // On one line.

  // A line, or part of one, on standard error, escaped in the same way.
  void note(std::string_view text);
  // Like note, dimmed on a terminal.
  void dim(std::string_view text);
  // On a terminal: a line that the next one replaces. Elsewhere: nothing.
  void progress(std::string_view line);
  void end_progress();              // Clears it.
  void report(const Error& error);  // "trtmc: sentence" and "hint: what to do".

  // Sets level and target of log lines, and says what the target is. Throws if the log file can't
  // be opened.
  LogSink configure_log(const LogOptions& options);
  bool quiet() const { return quiet_; }

 private:
  void write_err(std::string_view bytes);

  int out_, err_;
  bool out_is_terminal_, err_is_terminal_;
  bool quiet_ = false;
  std::atomic<bool> progress_shown_ = false;  // Log lines come from any thread.
};

// `text` with control characters (C0 but \n and \t, DEL, C1) and bytes that are not UTF-8 as
// escapes like \x1b.
std::string escape_controls(std::string_view text);

// The text of the source, whole: every byte, no newline added or removed. Throws if standard input
// is a terminal and would have to be read.
std::string read_text(const TextSource& source, std::string_view what);
std::string read_text(const std::filesystem::path& file, std::string_view what);
// The same, parsed; complaints name the file.
Json read_json(const std::filesystem::path& file, std::string_view what);

}  // namespace trtmc
