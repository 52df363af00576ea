// Renders what tests/differential/jinja_diff.py asks for: JSON lines {"template", "input", "date"}
// in, {"text"} or {"error", "code"} out. With "--time N FILE" it renders the first line of FILE N
// times and prints the microseconds a render takes; with "--templates FOLDER" it prints a request
// for each template of the fuzz corpus there.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "fuzz/jinja_grammar.h"
#include "text/chat_template.h"

namespace {

using trtmc::ChatInput;
using trtmc::ChatTemplate;
using trtmc::Json;

// The template's variables side by side, as Transformers passes them.
ChatInput to_input(const Json& variables, std::string_view date) {
  ChatInput input;
  input.local_time = trtmc::parse_date(date);
  for (const auto& [name, value] : *variables.object()) {
    if (name == "messages") {
      input.messages = value;
    } else if (name == "tools") {
      input.tools = value;
    } else if (name == "add_generation_prompt") {
      input.add_generation_prompt = *value.boolean();
    } else {
      input.template_kwargs.emplace_back(name, value);
    }
  }
  return input;
}

// Templates come again and again.
const ChatTemplate& parsed(const std::string& source) {
  static std::map<std::string, ChatTemplate> templates;
  if (const auto found = templates.find(source); found != templates.end()) return found->second;
  return templates.emplace(source, ChatTemplate(source)).first->second;
}

Json answer(const Json& request) {
  Json result;
  try {
    const ChatInput input = to_input(*request.find("input"), *request.find("date")->string());
    result.set("text", parsed(*request.find("template")->string()).render(input));
  } catch (const trtmc::Error& error) {
    result.set("error", std::string(error.what()));
    result.set("unsupported", error.code() == trtmc::ErrorCode::kUnsupported);
  }
  return result;
}

int time_renders(int count, const char* file) {
  const std::string text = trtmc::read_file(file);
  const Json request = Json::parse(text.substr(0, text.find('\n')));
  const ChatInput input = to_input(*request.find("input"), *request.find("date")->string());
  const ChatTemplate& chat = parsed(*request.find("template")->string());
  size_t bytes = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) bytes += chat.render(input).size();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  std::cout << time.count() / count << " us a render of " << bytes / static_cast<size_t>(count)
            << " bytes\n";
  return 0;
}

// The template that each file of a fuzz corpus stands for, as a request.
int print_templates(const char* corpus) {
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const std::string bytes = trtmc::read_file(entry.path());
    trtmc::FuzzInput input(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    const trtmc::GeneratedTemplate made = generate_template(input);
    Json variables(made.variables), request;
    variables.set("messages", Json::Array());
    request.set("template", made.source);
    request.set("date", "2026-09-04");
    request.set("input", std::move(variables));
    std::cout << request.dump() << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--templates") return print_templates(argv[2]);
  if (argc == 4 && std::string_view(argv[1]) == "--time") {
    return time_renders(std::stoi(argv[2]), argv[3]);
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(Json::parse(line)).dump() << '\n';
  }
  return 0;
}
