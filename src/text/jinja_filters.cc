#include "text/jinja_filters.h"

#include <algorithm>

#include "text/jinja_repr.h"

namespace trtmc::jinja {
namespace {
Value to_string(Interpreter&, const Value& value, const Arguments&) { return to_text(value); }
constexpr Filter kFilters[] = {{"string", to_string}};
}  // namespace
const Filter* find_filter(std::string_view name) {
  const auto found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                  [&](const Filter& filter) { return filter.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}
}  // namespace trtmc::jinja
