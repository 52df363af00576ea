#include "server/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "api/question.h"
#include "base/error.h"

namespace trtmc {
namespace {

struct Role {
  std::string_view name;
  std::string_view for_template;
  bool needs_content = true;
};
constexpr Role kRoles[] = {{"system", "system"}, {"developer", "system"},
                           {"user", "user"},     {"assistant", "assistant", false},
                           {"tool", "tool"},     {"function", "tool"}};

const Role& read_role(const JsonCursor& role) {
  const auto* const found = std::ranges::find(kRoles, role.string(), &Role::name);
  if (found != std::end(kRoles)) return *found;
  role.fail(
      fmt::format("{}, expected system, developer, user, assistant or tool", role.json().dump()));
}

std::string read_part(const JsonCursor& part) {
  const JsonCursor type = part.at("type");
  if (type.string() == "text") return part.at("text").string();
  if (type.string() == "refusal") return part.at("refusal").string();
  type.fail(fmt::format("{} is not supported, only text", type.json().dump()),
            ErrorCode::kUnsupported);
}

// The text of all parts, each on a line of its own.
std::string joined_parts(const JsonCursor& content) {
  std::string text;
  for (const JsonCursor& part : content.elements()) {
    if (!text.empty()) text += '\n';
    text += read_part(part);
  }
  return text;
}

Json read_content(const JsonCursor& content) {
  if (content.json().string()) return content.json();
  if (content.json().array()) return joined_parts(content);
  content.fail(
      fmt::format("{}, expected a string or an array of text parts", content.json().kind_name()));
}

// A call's arguments as the object that their text says; any other text stays a text.
void read_arguments(const JsonCursor& function, Json& result) {
  const auto arguments = function.find_set("arguments");
  if (!arguments || arguments->json().object()) return;
  try {
    Json parsed = Json::parse(arguments->string());
    if (parsed.object()) result.set("arguments", std::move(parsed));
  } catch (const FieldError&) {
    throw;
  } catch (const Error&) {
    return;  // What a model wrote that is no JSON.
  }
}

Json read_tool_call(const JsonCursor& call) {
  Json result = call.json();
  const JsonCursor function = call.at("function");
  Json function_json = function.json();
  function.at("name").string();
  read_arguments(function, function_json);
  result.set("function", std::move(function_json));
  return result;
}

Json read_message(const JsonCursor& message) {
  const Role& role = read_role(message.at("role"));
  Json result = message.json();
  result.set("role", role.for_template);
  if (const auto content = message.find_set("content")) {
    result.set("content", read_content(*content));
  } else if (role.needs_content) {
    message.at("content").fail("null, expected text");
  }
  if (const auto calls = message.find_set("tool_calls")) {
    Json::Array list;
    for (const JsonCursor& call : calls->elements()) list.push_back(read_tool_call(call));
    result.set("tool_calls", std::move(list));
  }
  return result;
}

bool is_system(const Json& message) {
  const Json* const role = message.find("role");
  return *role == Json("system");
}

bool is_blank(const Json& message) {
  return message.find("content")->string()->find_first_not_of(" \t\r\n") == std::string::npos;
}

constexpr std::string_view kProbeStart = "system message ", kProbeEnd = " of a probe";

// Which placeholders are in `prompt`, of messages up to `count`.
std::vector<bool> find_probes(std::string_view prompt, size_t count) {
  std::vector<bool> found(count);
  for (size_t at = prompt.find(kProbeStart); at != prompt.npos; at = prompt.find(kProbeStart, at)) {
    at += kProbeStart.size();
    size_t index = 0;
    const auto [end, error] =
        std::from_chars(prompt.data() + at, prompt.data() + prompt.size(), index);
    const std::string_view rest = prompt.substr(static_cast<size_t>(end - prompt.data()));
    if (error == std::errc() && index < count && rest.starts_with(kProbeEnd)) found[index] = true;
  }
  return found;
}

// The indices of the system messages that leave no trace in a prompt. Their words don't tell, since
// templates strip and replace, so others that nothing can be wrong with stand in for them.
std::vector<size_t> lost_messages(const ChatTemplate& chat_template, ChatInput input) {
  Json::Array& messages = *input.messages.array();
  std::vector<size_t> systems;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_system(messages[i]) || is_blank(messages[i])) continue;
    systems.push_back(i);
    messages[i].set("content", fmt::format("{}{}{}", kProbeStart, i, kProbeEnd));
  }
  const auto found = find_probes(render_prompt(chat_template, input), messages.size());
  std::erase_if(systems, [&](size_t i) { return found[i]; });
  return systems;
}

// Whether all system messages can be seen to be in `prompt` without a look at the template.
bool has_all(const std::string& prompt, const Json::Array& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_system(messages[i])) continue;
    if (i > 0 || prompt.find(*messages[i].find("content")->string()) == prompt.npos) return false;
  }
  return true;
}

// Makes one of the system messages that stand first.
void join_first(Json::Array& messages) {
  const auto end = std::ranges::find_if_not(messages, is_system);
  std::string text;
  for (auto message = messages.begin(); message != end; ++message) {
    if (!text.empty()) text += "\n\n";
    text += *message->find("content")->string();
  }
  messages.front().set("content", std::move(text));
  messages.erase(messages.begin() + 1, end);
}

}  // namespace

Json::Array read_messages(const JsonCursor& messages) {
  Json::Array result;
  for (const JsonCursor& message : messages.elements()) result.push_back(read_message(message));
  if (result.empty()) messages.fail("empty, expected at least one message");
  return result;
}

std::string render_with_system_messages(const ChatTemplate& chat_template, ChatInput input) {
  std::string prompt = render_prompt(chat_template, input);
  Json::Array& messages = *input.messages.array();
  if (has_all(prompt, messages)) return prompt;
  const std::vector<size_t> lost = lost_messages(chat_template, input);
  if (lost.empty()) return prompt;
  const auto num_first =
      static_cast<size_t>(std::ranges::find_if_not(messages, is_system) - messages.begin());
  if (lost.back() >= num_first || num_first == 1) {
    throw FieldError(ErrorCode::kUnsupported, fmt::format("messages[{}]", lost.back()),
                     "a system message that the model's chat template leaves out", "put it first");
  }
  join_first(messages);
  return render_prompt(chat_template, input);
}

}  // namespace trtmc
