#include "measure/speed_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace trtmc {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 70, kRight = 190, kTop = 50, kBottom = 50;
// Told apart by people who see colours differently (Okabe and Ito).
constexpr std::array<std::string_view, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                      "#cc79a7", "#e69f00", "#56b4e9"};

// One property of a case, with its name.
struct Property {
  std::string_view name;
  int SpeedCase::*member;
};
constexpr std::array<Property, 3> kProperties = {
    {{"depth", &SpeedCase::depth}, {"tokens", &SpeedCase::tokens}, {"batch", &SpeedCase::batch}}};

size_t num_values(std::span<const Speed> speeds, const Property& property) {
  std::set<int> values;
  for (const Speed& speed : speeds) values.insert(speed.of.*property.member);
  return values.size();
}

const Property& horizontal(std::span<const Speed> speeds) {
  return *std::ranges::max_element(kProperties, [&](const Property& a, const Property& b) {
    return num_values(speeds, a) < num_values(speeds, b);
  });
}

// "decode 64, batch 8": what a line's cases have in common.
std::string series_name(const SpeedCase& of, const Property& axis) {
  std::string name(to_string(of.kind));
  if (axis.name != "tokens") name += fmt::format(" {}", of.tokens);
  if (axis.name != "batch") name += fmt::format(", batch {}", of.batch);
  if (axis.name != "depth") name += fmt::format(", depth {}", of.depth);
  return name;
}

// A logarithmic scale; 0 stands where 1 does.
class Scale {
 public:
  Scale(double low, double high, double from, double to)
      : low_(log_of(low)), high_(std::max(log_of(high), log_of(low) + 1)), from_(from), to_(to) {}
  double operator()(double value) const {
    return from_ + (log_of(value) - low_) / (high_ - low_) * (to_ - from_);
  }

 private:
  static double log_of(double value) { return std::log2(std::max(value, 1e-9)); }
  double low_, high_, from_, to_;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

constexpr std::string_view kGrid = "stroke=\"#ccc\"";

// Powers of two and the like within [low, high]: 1, 2, 5 in each decade.
std::vector<double> ticks(double low, double high) {
  std::vector<double> values;
  for (double decade = std::pow(10.0, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (decade * factor >= low && decade * factor <= high) values.push_back(decade * factor);
    }
  }
  return values;
}

class Plot {
 public:
  Plot(std::span<const Speed> speeds, std::string_view title)
      : speeds_(speeds),
        axis_(horizontal(speeds)),
        low_(std::ranges::min(speeds, {}, [](const Speed& s) { return s.tokens_per_second.min; })
                 .tokens_per_second.min /
             1.2),
        high_(std::ranges::max(speeds, {}, [](const Speed& s) { return s.tokens_per_second.max; })
                  .tokens_per_second.max *
              1.2),
        x_(1, largest(), kLeft, kWidth - kRight),
        y_(low_, high_, kHeight - kBottom, kTop) {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kHeight);
    svg_ += text_at(kLeft, kTop - 22, "start", title);
    svg_ += text_at(kLeft, kTop - 6, "start", "tokens/s");
    svg_ += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", axis_.name);
  }

  std::string draw() {
    draw_grid();
    std::map<std::string, std::vector<const Speed*>> series;
    for (const Speed& speed : speeds_) series[series_name(speed.of, axis_)].push_back(&speed);
    size_t index = 0;
    for (auto& [name, points] : series) draw_series(name, points, index++);
    return svg_ + "</svg>\n";
  }

 private:
  double largest() const {
    const auto value = [&](const Speed& speed) { return speed.of.*axis_.member; };
    return value(std::ranges::max(speeds_, {}, value));
  }

  void draw_grid() {
    for (const double value : ticks(low_, high_)) {
      svg_ += line(kLeft, y_(value), kWidth - kRight, y_(value), kGrid);
      svg_ += text_at(kLeft - 6, y_(value) + 4, "end", fmt::format("{:g}", value));
    }
    std::set<int> values;
    for (const Speed& speed : speeds_) values.insert(speed.of.*axis_.member);
    for (const int value : values) {
      const double x = x_(std::max(value, 1));
      svg_ += line(x, kTop, x, kHeight - kBottom, kGrid);
      svg_ += text_at(x, kHeight - kBottom + 16, "middle", fmt::format("{}", value));
    }
  }

  void draw_series(std::string_view name, std::vector<const Speed*>& points, size_t index) {
    std::ranges::sort(points, {}, [&](const Speed* speed) { return speed->of.*axis_.member; });
    const std::string_view colour = kColours[index % kColours.size()];
    const std::string stroke = fmt::format("stroke=\"{}\"", colour);
    std::string path;
    for (const Speed* speed : points) {
      const double x = x_(std::max(speed->of.*axis_.member, 1));
      const double y = y_(speed->tokens_per_second.median);
      path += fmt::format("{:.1f},{:.1f} ", x, y);
      svg_ +=
          line(x, y_(speed->tokens_per_second.min), x, y_(speed->tokens_per_second.max), stroke);
      svg_ +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, colour);
    }
    svg_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", path, stroke);
    const double y = kTop + 18.0 * static_cast<double>(index);
    svg_ += line(kWidth - kRight + 12, y - 4, kWidth - kRight + 32, y - 4, stroke);
    svg_ += text_at(kWidth - kRight + 38, y, "start", name);
  }

  std::span<const Speed> speeds_;
  const Property& axis_;
  double low_, high_;
  Scale x_, y_;
  std::string svg_;
};

}  // namespace

std::string speed_plot_svg(std::span<const Speed> speeds, std::string_view title) {
  return Plot(speeds, title).draw();
}

}  // namespace trtmc
