#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "api/generation_request.h"
#include "api/question.h"
#include "cli/answer.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/line_editor.h"
#include "cli/prompt.h"

namespace trtmc {
namespace {

class Conversation {
 public:
  Conversation(const ChatCommand& command, Console& console)
      : command_(command),
        console_(console),
        model_(command.bundle, command.load),
        engine_(model_, command.engine),
        session_(command.chat.system, command.chat.think) {
    if (!model_.has_chat_template()) open_chat_template(model_.bundle());  // Says why not.
  }

  // With a person at the terminal: a failure is shown and the conversation goes on.
  void hold_at_terminal();
  // With lines from a pipe: each is a message or a command, and the first failure ends it.
  void hold_in_pipe();

 private:
  bool enter(std::string_view line);  // False: it is over.
  void answer();
  Question ask() const;

  const ChatCommand& command_;
  Console& console_;
  LoadedModel model_;
  Engine engine_;
  ChatSession session_;
  bool at_terminal_ = false;
};

void Conversation::hold_at_terminal() {
  at_terminal_ = true;
  // One that comes before the answer has begun stops it; one that comes after its end is spent.
  InterruptScope around_answers;
  if (!console_.quiet()) {
    console_.note(fmt::format("{} on {}; /help shows the commands\n",
                              model_.bundle().manifest().source, model_.executor().description()));
  }
  const auto state = user_folder(process_environment, "XDG_STATE_HOME", ".local/state");
  LineEditor editor(state ? *state / "chat_history" : std::filesystem::path());
  bool interrupted = false;
  while (true) {
    const LineEditor::Line line = editor.read();
    around_answers.forget();
    if (line.kind == LineEditor::Line::Kind::kEnd) return;
    if (line.kind == LineEditor::Line::Kind::kInterrupt) {
      // Whoever hit it before the question stood there has not answered it.
      if (interrupted && !line.typed_ahead) throw Interrupted();
      interrupted = true;
      console_.note("Ctrl-C once more, or Ctrl-D, ends the conversation\n");
      continue;
    }
    interrupted = false;
    try {
      if (!enter(line.text)) return;
    } catch (const Error& error) {
      console_.report(error);
    }
  }
}

void Conversation::hold_in_pipe() {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (!enter(line)) return;
  }
}

bool Conversation::enter(std::string_view line) {
  const ChatSession::Step step = session_.enter(line);
  switch (step.kind) {
    case ChatSession::Step::Kind::kExit:
      return false;
    case ChatSession::Step::Kind::kSay:
      if (!console_.quiet()) console_.note(step.text + "\n");
      break;
    case ChatSession::Step::Kind::kAnswer:
      answer();
      break;
    case ChatSession::Step::Kind::kNothing:
      break;
  }
  return true;
}

Question Conversation::ask() const {
  ChatOptions options = command_.chat;
  options.think = session_.think();
  options.system.reset();  // Among the messages already, as the session has it now.
  Question question = chat_question(
      model_, chat_input(model_.bundle().manifest(), options, session_.messages(), Json()));
  const int context = model_.context_length();
  if (question.ids.size() >= static_cast<size_t>(context)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the conversation has {} tokens, and the context only {}",
                            question.ids.size(), context),
                "/reset starts a new one, /save FILE keeps this one; --context N allows more if "
                "the model does");
  }
  return question;
}

// The history keeps the content alone, as chat programs do; the template would print reasoning that
// stands in it word for word.
void Conversation::answer() {
  std::string content;
  try {
    Question question = ask();
    AnswerPrinter printer(console_);
    const Answer answer = generate(
        engine_,
        make_request(model_.bundle().manifest(), command_.sampling, std::move(question.ids)),
        std::move(question.parser), [&](const Delta& delta) { printer.show(delta); });
    printer.finish();
    content = answer.content;
    if (answer.finish == FinishReason::kCancelled) {
      if (!at_terminal_) throw Interrupted();
      console_.note("(stopped)\n");
    }
    if (answer.finish == FinishReason::kLength && command_.sampling.max_tokens == 0) {
      console_.note("(the context is full; /reset starts a new conversation)\n");
    }
  } catch (...) {
    session_.answer("");
    throw;
  }
  session_.answer(content);
}

}  // namespace

void execute(const ChatCommand& command, Console& console) {
  console.configure_log(command.log);
  Conversation conversation(command, console);
  if (isatty(STDIN_FILENO) == 1 && console.err_is_terminal()) {
    conversation.hold_at_terminal();
  } else {
    conversation.hold_in_pipe();
  }
}

}  // namespace trtmc
