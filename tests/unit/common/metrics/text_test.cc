// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/text.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "common/metrics/family.h"

namespace sluice::metrics {
namespace {

/// A text as who reads it sees it: the value, as a number, of each line.
std::map<std::string, double> Lines(const std::string& text) {
  std::map<std::string, double> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.front() == '#' ? std::string::npos : line.rfind(' ');
    std::string what = line.substr(0, space);
    // A bound is a number, too.
    if (const size_t le = what.find("le=\""); le != std::string::npos) {
      const double bound = std::stod(what.substr(le + 4));
      what = what.substr(0, le) + std::to_string(bound) + "}";
    }
    EXPECT_TRUE(
        lines.emplace(what, space == std::string::npos ? 0 : std::stod(line.substr(space))).second)
        << line;
  }
  return lines;
}

TEST(TextOf, SaysWhatTheLibrarySays) {
  std::vector<prometheus::MetricFamily> families;
  Family gauge({"a_bytes", Type::kGauge, "", "Some help"});
  gauge.Add(12'345'678'901.0);
  gauge.Add(-7, {{"x", "1"}});
  gauge.Add(1.0 / 3, {{"x", "a \"b\" \\ \n c"}, {"y", ""}});
  gauge.Add(1e300, {{"x", "large"}});
  gauge.Add(9'007'199'254'740'993.0, {{"x", "beyond whole numbers"}});
  gauge.Add(INFINITY, {{"x", "inf"}});
  gauge.Add(-INFINITY, {{"x", "-inf"}});
  gauge.Add(0.0, {{"x", "0"}});
  families.push_back(std::move(gauge).Take());
  Family counter({"b_total", Type::kCounter, "", ""});
  counter.Add(3.5, {{"reason", "r"}});
  families.push_back(std::move(counter).Take());
  Family histogram({"c_seconds", Type::kHistogram, "", "Times"});
  histogram.Add(Histogram{{100, 300'000, 1'000'000}, {1, 2, 3, 4}, 12'345});
  histogram.SetCommon(LabelText({{"node", "n"}, {"gpu", "0"}}));
  histogram.Add(Histogram{{}, {5}, 12'345});
  families.push_back(std::move(histogram).Take());

  std::ostringstream library;
  prometheus::TextSerializer().Serialize(library, families);
  const std::string text = TextOf(families);
  EXPECT_EQ(Lines(text), Lines(library.str())) << text << library.str();
  EXPECT_NE(text.find("\na_bytes 12345678901\n"), std::string::npos) << text;
  EXPECT_NE(text.find(",le=\"+Inf\"} 5\n"), std::string::npos) << text;
}

TEST(TextOf, NoNumberAndLongHelpAreAsPrometheusReadsThem) {
  Family gauge({"a", Type::kGauge, "", "A\\\nB"});
  gauge.Add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(TextOf({std::move(gauge).Take()}), "# HELP a A\\\\\\nB\n# TYPE a gauge\na NaN\n");
}

}  // namespace
}  // namespace sluice::metrics
