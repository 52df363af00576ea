#include "cli/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>

#include "base/log.h"

namespace trtmc {
namespace {

// A pseudo-terminal: `slave` is what a program sees, `master` what its user sees.
class Terminal {
 public:
  Terminal() : master(posix_openpt(O_RDWR | O_NOCTTY)) {
    grantpt(master);
    unlockpt(master);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    close(slave);
    close(master);
  }
  std::string read_all() const {
    char buffer[4096];
    const ssize_t got = read(master, buffer, sizeof buffer);
    return {buffer, static_cast<size_t>(got > 0 ? got : 0)};
  }
  int master, slave;
};

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::string read_all() {
    close(ends[1]);
    std::string text(65536, '\0');
    const ssize_t got = read(ends[0], text.data(), text.size());
    text.resize(static_cast<size_t>(got > 0 ? got : 0));
    return text;
  }
  int ends[2];
};

TEST(Console, ControlCharactersBecomeEscapes) {
  EXPECT_EQ(escape_controls("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(escape_controls("\x1b[2J\a\r\x7f"), "\\x1b[2J\\x07\\x0d\\x7f");
  EXPECT_EQ(escape_controls("\xc2\x9b"
                            "31m"),
            "\\x9b31m");  // U+009B, the 8-bit CSI.
  EXPECT_EQ(escape_controls("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(escape_controls("\xff\xc3"), "\\xff\\xc3");  // No UTF-8.
}

TEST(Console, TheAnswerIsExactInAPipe) {
  Pipe out, err;
  Console(out.ends[1], err.ends[1]).print("\x1b[2J\xff\n");
  EXPECT_EQ(out.read_all(), "\x1b[2J\xff\n");
}

TEST(Console, TheAnswerIsEscapedOnATerminal) {
  Terminal terminal;
  Console console(terminal.slave, terminal.slave);
  ASSERT_TRUE(console.out_is_terminal());
  console.print("\x1b[2Jx");
  EXPECT_EQ(terminal.read_all(), "\\x1b[2Jx");
}

TEST(Console, ProgressIsShownOnATerminalOnly) {
  Pipe out, err;
  Console in_pipe(out.ends[1], err.ends[1]);
  in_pipe.progress("50 %");
  in_pipe.end_progress();
  EXPECT_EQ(err.read_all(), "");

  Terminal terminal;
  Console(1, terminal.slave).progress("50 %");
  EXPECT_EQ(terminal.read_all(), "\r\x1b[K50 %");
}

TEST(Console, AnErrorIsASentenceAndAHint) {
  Pipe out, err;
  Console(out.ends[1], err.ends[1])
      .report(Error(ErrorCode::kNotFound, "x.trtmc: no such file", "build it first"));
  EXPECT_EQ(err.read_all(), "trtmc: x.trtmc: no such file\nhint: build it first\n");
}

TEST(Console, AnErrorThatQuotesAWholeFileIsCut) {
  std::string quoted = "\u20AC";
  for (int i = 0; i < 12; ++i) quoted += quoted;  // 12 288 bytes, three a character.
  Pipe out, err;
  Console(out.ends[1], err.ends[1]).report(Error(ErrorCode::kCorrupt, quoted));
  EXPECT_EQ(err.read_all().size(),
            std::string("trtmc: ").size() + 4095 + std::string("…\n").size());
}

TEST(Console, AFullDiskIsExhausted) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  try {
    Console(full, 2).print("x");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
    EXPECT_STREQ(error.what(), "standard output: No space left on device");
  }
  close(full);
}

TEST(Console, ALogFileThatCantBeWrittenIsSaidOnce) {
  Pipe out, err;
  Console console(out.ends[1], err.ends[1]);
  console.configure_log({.quiet = false, .verbose = false, .file = "/dev/full"});
  log_info("first");
  log_info("second");
  set_log_sink({});
  EXPECT_EQ(err.read_all(),
            "warning: --log-file /dev/full: No space left on device; lines are missing there\n");
}

TEST(Console, AReaderThatLeftEndsTheOutputQuietly) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe out;
  close(out.ends[0]);
  EXPECT_THROW(Console(out.ends[1], 2).print("x"), OutputClosed);
  out.ends[0] = open("/dev/null", O_RDONLY);
}

}  // namespace
}  // namespace trtmc
