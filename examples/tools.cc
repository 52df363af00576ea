// tools BUNDLE QUESTION [YYYY-MM-DD]: a conversation with a model that may look up the weather.
#include <trtmc/trtmc.h>

#include <iostream>

namespace {

constexpr char kTools[] = R"([{
  "name": "get_weather",
  "description": "Get the weather in a city",
  "parameters": {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city"}},
    "required": ["city"]
  }
}])";

// A real program reads `call.arguments`, which are JSON, with the JSON library that it has.
std::string run_tool(const trtmc::ToolCall& call) {
  std::cout << "[" << call.name << " " << call.arguments << "]\n";
  if (call.name == "get_weather") return R"({"sky": "sunny", "temperature": 21})";
  return R"({"error": "there is no such tool"})";
}

void hold_conversation(const std::string& bundle, const std::string& question,
                       const std::string& date) {
  const trtmc::Model model(bundle);
  trtmc::Chat chat(model, {.think = false, .date = date, .tools = kTools});
  const trtmc::GenerationOptions options{.temperature = 0, .max_tokens = 64};
  trtmc::Answer answer = chat.ask(question, options).read();
  for (int rounds = 0; rounds < 3 && !answer.tool_calls.empty(); ++rounds) {
    std::vector<std::string> results;
    for (const trtmc::ToolCall& call : answer.tool_calls) results.push_back(run_tool(call));
    answer = chat.give_results(results, options).read();
  }
  std::cout << answer.content << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: tools BUNDLE QUESTION [YYYY-MM-DD]\n";
    return 2;
  }
  try {
    hold_conversation(argv[1], argv[2], argc == 4 ? argv[3] : "");
  } catch (const trtmc::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
