#include "server/chat_writer.h"

#include <utility>

#include "server/answer_object.h"
#include "server/token_json.h"

namespace trtmc {
namespace {

// Both names are read by clients.
void set_reasoning(Json& json, const std::string& reasoning) {
  if (reasoning.empty()) return;
  json.set("reasoning_content", reasoning);
  json.set("reasoning", reasoning);
}

Json function_json(const Json& name, const std::string& arguments) {
  Json json;
  if (!name.is_null()) json.set("name", name);
  json.set("arguments", arguments);
  return json;
}

Json call_json(const ToolCall& call, const std::string& arguments) {
  Json json;
  json.set("id", "call_" + random_hex(24));
  json.set("type", "function");
  json.set("function", function_json(call.name, arguments));
  return json;
}

std::string choice_json(int index, std::string_view part_name, Json part, std::string_view logprobs,
                        const Json& finish) {
  Json json;
  json.set("index", index);
  json.set(part_name, std::move(part));
  return choice_text(json, logprobs, finish);
}

// What both kinds of answers keep count of.
class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(ChatAnswerOptions options, std::string_view object)
      : options_(std::move(options)), object_("chatcmpl-", object, *options_.model) {}

 protected:
  const Tokenizer& tokenizer() const { return options_.model->loaded.tokenizer(); }

  void count(const Answer& answer) {
    cut_off_ |= answer.finish == FinishReason::kCancelled;
    reasoning_tokens_ += count_reasoning_tokens(options_, answer.tokens);
  }

  Json usage(const Usage& usage) const {
    Json details;
    details.set("reasoning_tokens", reasoning_tokens_);
    Json json = usage_json(usage);
    json.set("completion_tokens_details", std::move(details));
    return json;
  }

  const ChatAnswerOptions options_;
  const AnswerObject object_;
  bool cut_off_ = false;

 private:
  int reasoning_tokens_ = 0;
};

class WholeChatWriter final : public ChatWriter {
 public:
  WholeChatWriter(std::shared_ptr<Exchange> exchange, ChatAnswerOptions options)
      : ChatWriter(std::move(options), "chat.completion"),
        answer_(std::move(exchange), options_.num_choices),
        logprobs_(static_cast<size_t>(options_.num_choices)) {}

  void begin() override {}

  void add(int choice, const Delta& delta) override {
    if (!options_.logprobs || !delta.token) return;
    logprobs_[static_cast<size_t>(choice)].add(tokenizer(), *delta.token);
  }

  void end_choice(int choice, const Answer& answer) override {
    count(answer);
    answer_.set(choice, choice_json(choice, "message", message(answer), logprobs(choice),
                                    finish_reason(answer)));
  }

  void end(const Usage& total) override { answer_.end(object_, usage(total), cut_off_); }
  void fail(const ApiError& error) override { answer_.fail(error); }

 private:
  Json message(const Answer& answer) const {
    Json json;
    json.set("role", "assistant");
    // Text that was cut to nothing is text; what is nothing but calls has none.
    const bool has_text = !answer.content.empty() || answer.tool_calls.empty();
    json.set("content", has_text ? Json(answer.content) : Json());
    json.set("refusal", Json());
    set_reasoning(json, answer.reasoning);
    Json::Array calls;
    for (const ToolCall& call : answer.tool_calls) {
      calls.push_back(call_json(call, call.arguments));
      if (!options_.parallel_tool_calls) break;
    }
    if (!calls.empty()) json.set("tool_calls", std::move(calls));
    return json;
  }

  // No longer kept from now on.
  std::string logprobs(int choice) {
    if (!options_.logprobs) return {};
    return std::exchange(logprobs_[static_cast<size_t>(choice)], {}).json();
  }

  WholeAnswer answer_;
  std::vector<ChatLogprobs> logprobs_;  // [choice]
};

class StreamedChatWriter final : public ChatWriter {
 public:
  StreamedChatWriter(std::shared_ptr<Exchange> exchange, ChatAnswerOptions options)
      : ChatWriter(std::move(options), "chat.completion.chunk"),
        answer_(std::move(exchange), options_.stream),
        num_calls_(static_cast<size_t>(options_.num_choices)) {}

  void begin() override {
    answer_.start();
    Json role;
    role.set("role", "assistant");
    role.set("content", "");
    for (int choice = 0; choice < options_.num_choices; ++choice) send(choice, role);
  }

  void add(int choice, const Delta& delta) override {
    Json text = Json::Object();
    if (!delta.content.empty()) text.set("content", delta.content);
    set_reasoning(text, delta.reasoning);
    std::string logprobs;
    if (options_.logprobs && delta.token) {
      ChatLogprobs one;
      one.add(tokenizer(), *delta.token);
      logprobs = one.json();
    }
    const bool says_something = !text.object()->empty() || !logprobs.empty();
    if (says_something) send(choice, std::move(text), logprobs);
    for (const ToolCall& call : delta.tool_calls) add_call(choice, call);
  }

  void end_choice(int choice, const Answer& answer) override {
    count(answer);
    if (answer.finish == FinishReason::kCancelled) return;
    send(choice, Json::Object(), {}, finish_reason(answer));
  }

  void end(const Usage& total) override { answer_.end(object_, usage(total), cut_off_); }
  void fail(const ApiError& error) override { answer_.fail(error); }

 private:
  // Id, type and name once, then the arguments.
  void add_call(int choice, const ToolCall& call) {
    int& num_calls = num_calls_[static_cast<size_t>(choice)];
    if (num_calls > 0 && !options_.parallel_tool_calls) return;
    const int index = num_calls++;
    const auto send_part = [&](Json part) {
      Json numbered;
      numbered.set("index", index);
      for (auto& [key, value] : *part.object()) numbered.set(key, std::move(value));
      Json delta;
      delta.set("tool_calls", Json::Array{std::move(numbered)});
      send(choice, std::move(delta));
    };
    send_part(call_json(call, ""));
    Json arguments;
    arguments.set("function", function_json({}, call.arguments));
    send_part(std::move(arguments));
  }

  void send(int choice, Json delta, std::string_view logprobs = {}, const Json& finish = {}) {
    answer_.send(object_, choice_json(choice, "delta", std::move(delta), logprobs, finish));
  }

  StreamedAnswer answer_;
  std::vector<int> num_calls_;  // [choice]
};

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(std::shared_ptr<Exchange> exchange,
                                               ChatAnswerOptions options) {
  if (options.stream.stream) {
    return std::make_unique<StreamedChatWriter>(std::move(exchange), std::move(options));
  }
  return std::make_unique<WholeChatWriter>(std::move(exchange), std::move(options));
}

int count_reasoning_tokens(const ChatAnswerOptions& options, const std::vector<Token>& tokens) {
  const Tokenizer& tokenizer = options.model->loaded.tokenizer();
  OutputParser parser = options.parser;
  bool has_reasoned = parser.in_reasoning();
  int count = 0;
  for (const Token& token : tokens) {
    const bool shows = options.keep_special || !tokenizer.is_special(token.id);
    if (shows) parser.append(tokenizer.token_bytes(token.id));
    ++count;
    has_reasoned = has_reasoned || parser.in_reasoning();
    if (!parser.in_reasoning() && !parser.at_start()) break;
  }
  return has_reasoned ? count : 0;
}

}  // namespace trtmc
