// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/curve_svg.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(CurveSvg, StacksTheClassesOverTime) {
  // Half of the time 100 bytes, then 200, of which half are feature maps.
  const std::string svg = CurveSvg({{0, {100, 0, 0, 0, 0}}, {500, {100, 0, 100, 0, 0}}}, 1000, "t");
  // From the left edge at half the height to the middle, then on to the right edge.
  EXPECT_NE(svg.find("points=\"90.00,195.00 475.00,195.00 475.00,195.00 860.00,195.00 "),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("points=\"90.00,195.00 475.00,195.00 475.00,40.00 860.00,40.00 "),
            std::string::npos)
      << svg;
  EXPECT_EQ(svg.find(">gradient<"), std::string::npos) << "what is not there has no legend";
}

TEST(CurveSvg, TitlesAreNoMarkup) {
  const std::string svg = CurveSvg({{0, {1, 0, 0, 0, 0}}}, 1, "<a&b>\x01\xff");
  EXPECT_NE(svg.find("&lt;a&amp;b&gt;??"), std::string::npos);
}

TEST(CurveSvg, OfManyLaunchesItKeepsWhatPixelsShow) {
  // A peak and a trough that last a 200,000th of the time, in a curve that is never at rest.
  std::vector<scheduler::CurvePoint> curve;
  for (uint64_t i = 0; i < 200'000; ++i) {
    const uint64_t bytes = i == 77'777 ? 1000 : i == 123'456 ? 0 : 400 + i % 100;
    curve.push_back({static_cast<double>(i), {bytes, 0, 100, 0, 0}});
  }
  const std::string svg = CurveSvg(curve, 200'000, "t");
  EXPECT_LT(svg.size(), 500'000u);
  // 310 pixels have 1100 bytes.
  EXPECT_NE(svg.find(",40.00 "), std::string::npos) << "the highest point";
  EXPECT_NE(svg.find(",68.18 "), std::string::npos) << "of the band below it";
  EXPECT_NE(svg.find(",321.82 "), std::string::npos) << "the lowest";
}

TEST(CurveSvg, NothingIsAPictureToo) {
  EXPECT_NE(CurveSvg({}, 0, "").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
