#include "text/chat_template.h"

#include <utility>

#include "base/error.h"
#include "text/jinja_eval.h"
#include "text/jinja_folding.h"
#include "text/jinja_parser.h"

namespace trtmc {

struct ChatTemplate::Impl {
  explicit Impl(std::string_view source) : tree(jinja::parse(source)) {
    jinja::fold_constants(tree);
  }

  jinja::Template tree;
};

ChatTemplate::ChatTemplate(std::string_view source) : impl_(std::make_unique<const Impl>(source)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const ChatInput& input) const {
  jinja::Dict variables;
  try {
    for (const auto& [name, value] : input.template_kwargs) {
      variables.set(name, jinja::Value::from_json(value));
    }
    variables.set("messages", jinja::Value::from_json(input.messages));
    variables.set("tools", jinja::Value::from_json(input.tools));
    if (!variables.find(std::string_view("documents"))) variables.set("documents", jinja::None{});
    variables.set("add_generation_prompt", input.add_generation_prompt);
  } catch (const jinja::Failure& failure) {
    throw Error(failure.code, failure.message);
  }
  return jinja::Interpreter(impl_->tree, variables, input.local_time).render();
}

}  // namespace trtmc
