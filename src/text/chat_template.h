// A checkpoint's own chat template, executed as Transformers executes it: messages, tools and a
// date in, the prompt's exact bytes out. Thread-safe: const after construction.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trtmc {

struct ChatInput {
  Json messages;  // An array of objects, as the client sent them.
  Json tools;     // An array, or null. The template sees it as `tools`.
  bool add_generation_prompt = true;
  Json::Object template_kwargs;  // Passed straight through: enable_thinking, xml_tools, …
  std::tm local_time{};          // What strftime_now shows.
};

class ChatTemplate {
 public:
  // `special_tokens` are variables of the template ("bos_token": "<s>"); template_kwargs of the
  // same name come before them. Throws kUnsupported or kInvalidArgument with line and column.
  explicit ChatTemplate(std::string_view source,
                        std::map<std::string, std::string> special_tokens = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Throws kInvalidArgument with line and column: an error of the template on this input (also what
  // it raises itself with raise_exception), or a limit on steps, depth or output exceeded.
  std::string render(const ChatInput& input) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// The object form of a chat request ({"messages": …, "tools": …, "add_generation_prompt": …,
// "chat_template_kwargs": {…}}) or a bare array of messages. Unknown keys are refused by name.
ChatInput chat_input_from_json(const Json& request, const std::tm& local_time);

// "2026-09-04" as the local time of that day at noon. Throws kInvalidArgument.
std::tm parse_date(std::string_view date);

}  // namespace trtmc
