#include <utility>

#include "api/handles.h"

namespace trtmc {

struct Chat::Impl {
  std::shared_ptr<Model::Impl> model;
  ChatOptions options;
  Json tools;         // An array, or null.
  Json::Array turns;  // Of user, assistant and tools.
  size_t calls = 0;   // Of the last turn.
  bool answering = false;
};

namespace {

Json parse_tools(const std::string& text) {
  if (text.empty()) return {};
  return with_context("tools", [&] {
    Json tools = Json::parse(text);
    if (tools.array() != nullptr) return tools;
    throw Error(ErrorCode::kInvalidArgument,
                std::string(tools.kind_name()) + ", expected a JSON array");
  });
}

// As the template shows it: in the field that it reads, or, if it knows none, as the model wrote
// them.
Json assistant_turn(const LoadedModel& model, const Answer& answer) {
  const auto source = model.bundle().chat_template();
  const bool knows_calls = source && source->find("tool_calls") != source->npos;
  std::string content = answer.content;
  Json::Array calls;
  for (const ToolCall& call : answer.tool_calls) {
    const OutputMarkers& markers = model.bundle().manifest().markers;
    Json function = to_json(call);
    if (!knows_calls) {
      if (!content.empty()) content += '\n';
      content += markers.tool_open + '\n' + function.dump() + '\n' + markers.tool_close;
      continue;
    }
    Json json;
    json.set("type", "function");
    json.set("function", std::move(function));
    calls.push_back(std::move(json));
  }
  Json turn = message("assistant", content);
  if (!calls.empty()) turn.set("tool_calls", std::move(calls));
  return turn;
}

void require_idle(const Chat::Impl& chat) {
  if (!chat.answering) return;
  throw Error(ErrorCode::kInvalidArgument, "the conversation's last answer is not over",
              "read its stream to the end, or let it go");
}

// Adds `turns` and asks for the answer, which joins the history when it ends.
Stream answer(const std::shared_ptr<Chat::Impl>& chat, Json::Array turns,
              const GenerationOptions& options) {
  Json::Array messages = chat->turns;
  messages.insert(messages.end(), turns.begin(), turns.end());
  const LoadedModel& loaded = chat->model->loaded;
  Question question = chat_question(
      loaded, chat_input(loaded.bundle().manifest(), chat->options, messages, chat->tools));
  const auto record = [chat, history = std::move(messages)](const Answer& whole) mutable {
    chat->answering = false;
    if (whole.content.empty() && whole.tool_calls.empty()) return;
    history.push_back(assistant_turn(chat->model->loaded, whole));
    chat->turns = std::move(history);
    chat->calls = whole.tool_calls.size();
  };
  Stream stream = ask_model(chat->model, std::move(question), options, record);
  chat->answering = true;
  return stream;
}

}  // namespace

Chat::Chat(const Model& model, const ChatOptions& options)
    : impl_(as_error([&] {
        return std::make_shared<Impl>(
            Impl{model.impl_, options, parse_tools(options.tools), {}, 0, false});
      })) {
  as_error([&] {
    const LoadedModel& loaded = impl_->model->loaded;
    loaded.chat_template();  // Throws if there is none.
    chat_input(loaded.bundle().manifest(), options, {}, impl_->tools);
  });
}

Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

Stream Chat::ask(std::string_view text, const GenerationOptions& options) {
  return as_error([&] {
    require_idle(*impl_);
    return answer(impl_, {message("user", text)}, options);
  });
}

Stream Chat::give_results(const std::vector<std::string>& results,
                          const GenerationOptions& options) {
  return as_error([&] {
    require_idle(*impl_);
    if (results.empty() || results.size() != impl_->calls) {
      throw Error(ErrorCode::kInvalidArgument,
                  std::to_string(results.size()) +
                      " results of tools, but the last answer called " +
                      std::to_string(impl_->calls));
    }
    Json::Array turns;
    for (const std::string& result : results) turns.push_back(message("tool", result));
    return answer(impl_, std::move(turns), options);
  });
}

std::string Chat::history() const {
  return as_error([&] { return Json(impl_->turns).dump(); });
}

void Chat::set_history(std::string_view json) {
  as_error([&] {
    require_idle(*impl_);
    const Json parsed = with_context("history", [&] { return Json::parse(json); });
    if (parsed.array() == nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  "history: " + std::string(parsed.kind_name()) + ", expected an array");
    }
    impl_->turns = *chat_input_from_json(parsed, {}).messages.array();
    impl_->calls = 0;
  });
}

}  // namespace trtmc
