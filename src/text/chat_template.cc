#include "text/chat_template.h"

#include <utility>

#include "base/error.h"
#include "text/jinja_eval.h"
#include "text/jinja_folding.h"
#include "text/jinja_parser.h"

namespace trtmc {

struct ChatTemplate::Impl {
  Impl(std::string_view source, std::map<std::string, std::string> tokens)
      : tree(jinja::parse(source)), special_tokens(std::move(tokens)) {
    jinja::fold_constants(tree);
  }

  jinja::Template tree;
  std::map<std::string, std::string> special_tokens;
};

ChatTemplate::ChatTemplate(std::string_view source,
                           std::map<std::string, std::string> special_tokens)
    : impl_(std::make_unique<const Impl>(source, std::move(special_tokens))) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const ChatInput& input) const {
  jinja::Dict variables;
  try {
    for (const auto& [name, token] : impl_->special_tokens) {
      variables.set(name, jinja::Value::from_json(Json(token)));
    }
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
