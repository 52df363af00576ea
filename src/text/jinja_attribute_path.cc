#include "text/jinja_attribute_path.h"

#include "text/jinja_eval.h"
#include "text/jinja_operators.h"
#include "text/jinja_predicates.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {

AttributePath::AttributePath(Interpreter& interpreter, const Value& attribute)
    : interpreter_(interpreter) {
  if (!attribute.is_set() || attribute.is_none()) return;
  const String* text = attribute.string();
  if (!text) {
    parts_.push_back(attribute);
    return;
  }
  interpreter.meter().make_string(text->text.size());
  for (const std::string_view part : split(text->text, ".", -1)) {
    interpreter.meter().spend(1);
    const auto index = is_digit(part) ? parse_integer(part) : std::nullopt;
    parts_.push_back(index ? Value(*index) : Value(part));
  }
}

Value AttributePath::of(const Value& item, const Value& fallback) const {
  Value result = item;
  for (const Value& part : parts_) {
    interpreter_.meter().spend(1);
    result = jinja::item(interpreter_, result, part);
    if (result.is_undefined() && !fallback.is_none()) result = fallback;
  }
  return result;
}

Value ItemKey::of(const Value& item, const Value& fallback) const {
  Value key = path_.of(item, fallback);
  const String* text = key.string();
  if (case_sensitive_ || !text) return key;
  interpreter_.meter().spend_text(text->text.size());
  interpreter_.meter().make_string(text->text.size());
  return lower(text->text);
}

}  // namespace trtmc::jinja
