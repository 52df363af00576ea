#include "api/question.h"
#include "cli/commands.h"
#include "cli/prompt.h"
#include "text/tokenizer.h"

namespace trtmc {

void execute(const PromptCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  const ChatTemplate chat_template = open_chat_template(bundle);
  const Json request = read_json(command.file, "a conversation in JSON");
  const ChatInput input = chat_input_from_json(request, local_time_on(command.date));
  const std::string prompt = render_prompt(chat_template, input);
  if (!command.ids) return console.print(prompt);
  const Tokenizer tokenizer(bundle.tokenizer_tables());
  const std::vector<TokenId> ids = tokenizer.encode(prompt);
  console.print_json(Json::Array(ids.begin(), ids.end()));
}

}  // namespace trtmc
