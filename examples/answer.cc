// answer BUNDLE QUESTION: loads a bundle and streams an answer.
#include <trtmc/trtmc.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: answer BUNDLE QUESTION\n";
    return 2;
  }
  try {
    const trtmc::Model model(argv[1]);
    trtmc::Chat chat(model, {.think = false});
    trtmc::Stream stream = chat.ask(argv[2], {.temperature = 0});
    for (const trtmc::Delta& delta : stream) std::cout << delta.content << std::flush;
    std::cout << '\n';
  } catch (const trtmc::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
