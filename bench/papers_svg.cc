// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "noderuntime/cli/offline/format.h"

namespace sluice::bench {
namespace {

using cli::Format;

constexpr double kWidth = 760;
constexpr double kHeight = 420;
constexpr double kLeft = 80;
constexpr double kTop = 40;
constexpr double kPlotWidth = kWidth - kLeft - 180;
constexpr double kPlotHeight = kHeight - kTop - 60;
/// Okabe and Ito's palette, which people who see colours differently can tell apart.
constexpr std::array<const char*, 8> kStroke = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#56b4e9", "#e69f00", "#000000", "#999999"};

std::string TextAt(double x, double y, const char* anchor, const std::string& text) {
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                text.c_str());
}

/// 1, 2 or 5 times a power of ten: at most five of them up to `most`.
double TickFor(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power * 5 >= most) return step * power;
  }
  return 10 * power;
}

}  // namespace

std::string SvgOf(const Chart& chart) {
  double most_x = 1e-9;
  double most_y = 1e-9;
  for (const Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      most_x = std::max(most_x, x);
      most_y = std::max(most_y, y);
    }
  }
  const double tick_x = TickFor(most_x);
  const double tick_y = TickFor(most_y);
  most_y = std::ceil(most_y / tick_y) * tick_y;
  const auto at_x = [&](double x) { return kLeft + x / most_x * kPlotWidth; };
  const auto at_y = [&](double y) { return kTop + kPlotHeight - y / most_y * kPlotHeight; };
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += TextAt(kLeft, kTop - 16, "start", chart.title + " (simulated)");
  for (double y = 0; y <= most_y * 1.0001; y += tick_y) {
    svg += Format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  kLeft, kLeft + kPlotWidth, at_y(y), at_y(y));
    svg += TextAt(kLeft - 6, at_y(y) + 4, "end", Format("%g", y));
  }
  for (double x = 0; x <= most_x * 1.0001; x += tick_x) {
    svg += TextAt(at_x(x), kTop + kPlotHeight + 18, "middle", Format("%g", x));
  }
  svg += TextAt(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 40, "middle", chart.x);
  svg += TextAt(kLeft, kTop - 2, "end", chart.y);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const char* stroke = kStroke[i % kStroke.size()];
    std::string points;
    for (const auto& [x, y] : chart.series[i].points) {
      points += Format("%.1f,%.1f ", at_x(x), at_y(y));
    }
    svg += Format("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", stroke) +
           points + "\"/>\n";
    const double y = kTop + 18 * static_cast<double>(i);
    svg += Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n",
                  kLeft + kPlotWidth + 14, y, stroke);
    svg += TextAt(kLeft + kPlotWidth + 32, y + 6, "start", chart.series[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace sluice::bench
