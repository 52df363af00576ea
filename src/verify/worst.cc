#include "verify/worst.h"

#include <cmath>
#include <limits>
#include <utility>

#include "verify/metrics.h"

namespace trtmc {

void Worst::take(double figure, const std::string& where) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(figure)) figure = at_most_ ? kInfinity : -kInfinity;
  if (!empty_ && (at_most_ ? figure <= figure_ : figure >= figure_)) return;
  empty_ = false;
  figure_ = figure;
  where_ = where;
}

Check Worst::check(std::string name, double threshold) const {
  return {std::move(name), finite(figure_), threshold, at_most_, where_};
}

}  // namespace trtmc
