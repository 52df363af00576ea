// The filters by kind. Private to the filters.
#pragma once

#include <span>

#include "text/jinja_filters.h"

namespace trtmc::jinja {

std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();

}  // namespace trtmc::jinja
