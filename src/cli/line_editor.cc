#include "cli/line_editor.h"

#include <histedit.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "cli/interrupts.h"

namespace trtmc {
namespace {

constexpr int kHistoryLines = 1000;

// libedit reads multi-byte characters by the locale's character type. Only that, and only while it
// runs: the rest of the program does not depend on a locale.
class Utf8Locale {
 public:
  Utf8Locale() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) previous_ = uselocale(utf8_);
  }
  ~Utf8Locale() {
    if (utf8_ == nullptr) return;
    uselocale(previous_);
    freelocale(utf8_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t utf8_;
  locale_t previous_ = nullptr;
};

}  // namespace

struct LineEditor::Impl {
  std::filesystem::path history_file;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  bool interrupted = false;
  bool continued = false;  // The prompt of a line that goes on.

  static Impl* of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<Impl*>(data);
  }
  static char* prompt(EditLine* editor) {
    static char first[] = "> ";
    static char next[] = "… ";
    return of(editor)->continued ? next : first;
  }
  static unsigned char on_interrupt(EditLine* editor, int) {
    of(editor)->interrupted = true;
    return CC_EOF;
  }
  // As the terminal does where Ctrl-Z is a signal: to all of the shell's job.
  static unsigned char on_suspend(EditLine* editor, int) {
    of(editor)->set_editing(false);
    kill(0, SIGTSTP);
    of(editor)->set_editing(true);
    return CC_REDISPLAY;
  }
  void open();
  void set_editing(bool on) const { el_set(editor, EL_PREP_TERM, on ? 1 : 0); }
  Line read_one();
};

void LineEditor::Impl::open() {
  const Utf8Locale locale;
  // The prompt is no part of the answer, so the editor draws on standard error.
  editor = el_init("trtmc", stdin, stderr, stderr);
  history = history_init();
  ::history(history, &event, H_SETSIZE, kHistoryLines);
  ::history(history, &event, H_SETUNIQUE, 1);
  if (!history_file.empty()) ::history(history, &event, H_LOAD, history_file.c_str());
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_PROMPT, prompt);
  el_set(editor, EL_HIST, ::history, history);
  // While a line is edited, Ctrl-C and Ctrl-Z are keys like others and not signals.
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  // The wide form: the other one leaks its two texts.
  el_wset(editor, EL_ADDFN, L"trtmc-interrupt", L"give the line up", on_interrupt);
  el_set(editor, EL_BIND, "^C", "trtmc-interrupt", nullptr);
  el_wset(editor, EL_ADDFN, L"trtmc-suspend", L"stop until the shell's fg", on_suspend);
  el_set(editor, EL_BIND, "^Z", "trtmc-suspend", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::Line LineEditor::Impl::read_one() {
  const Utf8Locale locale;
  interrupted = false;
  int count = 0;
  const TerminalScope terminal;
  set_editing(true);  // Before the prompt shows, so that what is typed at once is edited too.
  int waiting = 0;
  const bool typed_ahead = ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
  const char* const text = el_gets(editor, &count);
  if (interrupted) {
    std::fputs("^C\n", stderr);
    return {Line::Kind::kInterrupt, "", typed_ahead};
  }
  if (text == nullptr || count <= 0) {
    std::fputs("\n", stderr);
    return {Line::Kind::kEnd, ""};
  }
  std::string_view line(text, static_cast<size_t>(count));
  if (line.ends_with('\n')) line.remove_suffix(1);
  return {Line::Kind::kText, std::string(line)};
}

LineEditor::LineEditor(std::filesystem::path history) : impl_(std::make_unique<Impl>()) {
  impl_->history_file = std::move(history);
  impl_->open();
}

LineEditor::~LineEditor() {
  if (!impl_->history_file.empty()) {
    std::error_code ignored;  // A history that can't be kept is no reason to fail.
    std::filesystem::create_directories(impl_->history_file.parent_path(), ignored);
    ::history(impl_->history, &impl_->event, H_SAVE, impl_->history_file.c_str());
  }
  el_end(impl_->editor);
  history_end(impl_->history);
}

LineEditor::Line LineEditor::read() {
  std::string text;
  impl_->continued = false;
  while (true) {
    Line line = impl_->read_one();
    if (line.kind != Line::Kind::kText) return line;
    if (!line.text.empty()) ::history(impl_->history, &impl_->event, H_ENTER, line.text.c_str());
    text += line.text;
    if (!text.ends_with('\\')) return {Line::Kind::kText, text};
    text.back() = '\n';
    impl_->continued = true;
  }
}

}  // namespace trtmc
