// The text files of a Hugging Face folder, made of what a bundle holds: for exports, whose users
// load them with Hugging Face's libraries.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle.h"

namespace trtmc {

struct TextFile {
  std::string name;
  std::string text;
};

// config.json, generation_config.json; tokenizer.json and tokenizer_config.json if the bundle has a
// tokenizer; chat_template.jinja if it has a template. They are not the checkpoint's own files, but
// building from them gives the same specification, tables, template and defaults. Throws
// kUnsupported for a family that this version does not know, and for a specification that its
// config.json can't say.
std::vector<TextFile> model_text_files(const Bundle& bundle);

}  // namespace trtmc
