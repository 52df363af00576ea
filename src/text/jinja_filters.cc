#include "text/jinja_filters.h"

#include <algorithm>

#include "text/jinja_filter_tables.h"

namespace trtmc::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), number_filters(), sequence_filters()}) {
    const auto found = std::find_if(filters.begin(), filters.end(),
                                    [&](const Filter& filter) { return filter.name == name; });
    if (found != filters.end()) return &*found;
  }
  return nullptr;
}

}  // namespace trtmc::jinja
