// Measured speeds as a picture: how tokens a second change with depth, length or batch.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "measure/speed.h"

namespace trtmc {

// An SVG document on its own. The horizontal axis is what differs most often among the cases:
// depth, else tokens, else batch; cases that are alike otherwise share a line. Logarithmic in both
// directions, with each point's range of rounds. `speeds`: at least one.
std::string speed_plot_svg(std::span<const Speed> speeds, std::string_view title);

}  // namespace trtmc
