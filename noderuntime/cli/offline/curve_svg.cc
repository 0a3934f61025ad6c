// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/curve_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "common/bytes.h"

namespace sluice::cli {
namespace {

using scheduler::CurvePoint;
using scheduler::kBlockClasses;

constexpr double kWidth = 900;
constexpr double kHeight = 420;
constexpr double kLeft = 90;
constexpr double kTop = 40;
constexpr double kPlotWidth = kWidth - kLeft - 40;
constexpr double kPlotHeight = kHeight - kTop - 70;
/// Okabe and Ito's palette, which people who see colours differently can tell apart.
constexpr const char* kFill[kBlockClasses] = {"#56b4e9", "#f0e442", "#0072b2", "#d55e00",
                                              "#999999"};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (static_cast<unsigned char>(c) >= ' ' && static_cast<unsigned char>(c) < 0x7f) {
      out += c;
    } else {
      out += '?';  // XML knows no control characters, and a file's name need not be UTF-8
    }
  }
  return out;
}

std::string Point(double x, double y) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f,%.2f ", x, y);
  return text;
}

std::string TextAt(double x, double y, const char* anchor, const std::string& text) {
  char head[128];
  std::snprintf(head, sizeof head, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  return head + Escaped(text) + "</text>\n";
}

struct Corner {
  double x;
  double y;
};

/// Of those that lie in one pixel's column nobody sees more than where the line comes in, how high
/// and how low it gets, and where it leaves: few are left of many.
std::vector<Corner> Thinned(const std::vector<Corner>& corners) {
  std::vector<Corner> kept;
  for (size_t begin = 0, end = 0; begin < corners.size(); begin = end) {
    const double column = std::floor(corners[begin].x);
    while (end < corners.size() && std::floor(corners[end].x) == column) ++end;
    const auto [low, high] =
        std::minmax_element(corners.begin() + static_cast<std::ptrdiff_t>(begin),
                            corners.begin() + static_cast<std::ptrdiff_t>(end),
                            [](const Corner& a, const Corner& b) { return a.y < b.y; });
    const auto at = [&](auto place) { return static_cast<size_t>(place - corners.begin()); };
    std::array<size_t, 4> chosen = {begin, at(low), at(high), end - 1};
    std::sort(chosen.begin(), chosen.end());
    const bool few = end - begin <= chosen.size();
    for (size_t i = 0; i < (few ? end - begin : chosen.size()); ++i) {
      kept.push_back(corners[few ? begin + i : chosen[i]]);
    }
  }
  return kept;
}

/// A line that keeps the height y[i] from x[i] to x[i + 1].
std::vector<Corner> Steps(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<Corner> corners;
  for (size_t i = 0; i < y.size(); ++i) {
    corners.push_back({x[i], y[i]});
    corners.push_back({x[i + 1], y[i]});
  }
  return Thinned(corners);
}

/// Up the steps of `upper` and back down those of `lower`.
std::string Band(const std::vector<Corner>& lower, const std::vector<Corner>& upper,
                 const char* fill) {
  std::string points;
  for (const Corner& corner : upper) points += Point(corner.x, corner.y);
  for (size_t i = lower.size(); i-- > 0;) points += Point(lower[i].x, lower[i].y);
  return "<polygon fill=\"" + std::string(fill) + "\" points=\"" + points + "\"/>\n";
}

}  // namespace

std::string CurveSvg(const std::vector<CurvePoint>& curve, double end_ns,
                     const std::string& title) {
  uint64_t most = 1;
  for (const CurvePoint& point : curve) most = std::max(most, point.total());
  const double end = std::max(end_ns, 1.0);
  const auto y_of = [&](double bytes) {
    return kTop + kPlotHeight * (1 - bytes / static_cast<double>(most));
  };
  std::vector<double> x;
  for (const CurvePoint& point : curve) x.push_back(kLeft + kPlotWidth * point.ns / end);
  x.push_back(kLeft + kPlotWidth);

  char head[256];
  std::snprintf(head, sizeof head,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"13\">\n",
                kWidth, kHeight, kWidth, kHeight);
  std::string svg = std::string(head) + "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
                    TextAt(kLeft, 24, "start", title);
  std::vector<double> sum(curve.size(), 0);
  std::vector<Corner> lower = Steps(x, std::vector<double>(curve.size(), y_of(0)));
  double legend = kLeft;
  for (size_t kind = 0; kind < kBlockClasses; ++kind) {
    bool any = false;
    std::vector<double> heights(curve.size());
    for (size_t i = 0; i < curve.size(); ++i) {
      any |= curve[i].bytes[kind] > 0;
      sum[i] += static_cast<double>(curve[i].bytes[kind]);
      heights[i] = y_of(sum[i]);
    }
    if (!any) continue;
    std::vector<Corner> upper = Steps(x, heights);
    svg += Band(lower, upper, kFill[kind]);
    lower = std::move(upper);
    char swatch[128];
    std::snprintf(swatch, sizeof swatch,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", legend,
                  kHeight - 26, kFill[kind]);
    svg += swatch;
    svg += TextAt(legend + 18, kHeight - 15, "start",
                  std::string(scheduler::BlockClassName(static_cast<scheduler::BlockClass>(kind))));
    legend += 130;
  }
  for (const double part : {0.0, 0.5, 1.0}) {
    const double bytes = part * static_cast<double>(most);
    svg += TextAt(kLeft - 8, y_of(bytes) + 4, "end", FormatBytes(static_cast<uint64_t>(bytes)));
    char time[32];
    std::snprintf(time, sizeof time, "%.1f ms", part * end / 1e6);
    svg += TextAt(kLeft + kPlotWidth * part, kTop + kPlotHeight + 20, "middle", time);
  }
  return svg + "</svg>\n";
}

}  // namespace sluice::cli
