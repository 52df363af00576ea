#include "measure/speed_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Speed speed(SpeedKind kind, int depth, int batch, double tokens_per_second) {
  return {.of = {.kind = kind, .tokens = 64, .depth = depth, .batch = batch},
          .tokens_per_second = Range({tokens_per_second}),
          .bytes_per_second = 0,
          .operations_per_second = 0,
          .read_roof = 0,
          .copy_roof = 0,
          .multiply_roof = 0,
          .roof_share = 0,
          .num_threads = 1,
          .logits_hash = 0};
}

size_t count(std::string_view text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(SpeedPlot, HasALineForEachKindAndBatchAndAPointForEachDepth) {
  const Speed speeds[] = {
      speed(SpeedKind::kDecode, 0, 1, 10),    speed(SpeedKind::kDecode, 1024, 1, 8),
      speed(SpeedKind::kDecode, 4096, 1, 4),  speed(SpeedKind::kDecode, 0, 8, 40),
      speed(SpeedKind::kDecode, 1024, 8, 20), speed(SpeedKind::kDecode, 4096, 8, 10)};
  const std::string svg = speed_plot_svg(speeds, "a <model>");
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_EQ(count(svg, "<circle"), 6U);
  EXPECT_THAT(svg, HasSubstr(">depth</text>"));
  EXPECT_THAT(svg, HasSubstr("decode 64, batch 8"));
  EXPECT_THAT(svg, HasSubstr("a &lt;model>"));
}

TEST(SpeedPlot, PutsWhatDiffersOnTheHorizontalAxis) {
  const Speed speeds[] = {speed(SpeedKind::kDecode, 0, 1, 10), speed(SpeedKind::kDecode, 0, 8, 40)};
  const std::string svg = speed_plot_svg(speeds, "batches");
  EXPECT_THAT(svg, HasSubstr(">batch</text>"));
  EXPECT_EQ(count(svg, "<polyline"), 1U);
}

TEST(SpeedPlot, OfOneCaseHasFinitePlaces) {
  const Speed speeds[] = {speed(SpeedKind::kPrefill, 0, 1, 10)};
  const std::string svg = speed_plot_svg(speeds, "one");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace trtmc
