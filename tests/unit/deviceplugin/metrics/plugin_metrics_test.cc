// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/metrics/plugin_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <sstream>

namespace sluice::deviceplugin {
namespace {

std::string Text(const Figures& figures, const NodeCounts& counts) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, MetricsOf("n1", figures, counts));
  return text.str();
}

TEST(PluginMetrics, SayWhatWasCounted) {
  Figures figures;
  figures.registered = true;
  figures.registrations = 3;
  figures.registrations_failed = 2;
  figures.allocations_granted = 5;
  figures.allocations_refused = 1;
  figures.allocate.Add(600'000);
  figures.allocate.Add(20'000'000'000);
  figures.events_written = 4;
  const std::string text =
      Text(figures, {{{"GPU-a", 1}, {"GPU-b", 1}}, {{10, 0, 2}, {0, 12, 0}}, 6});
  for (const char* line : {
           R"(sluice_plugin_registered{node="n1"} 1)",
           R"(sluice_plugin_registrations_total{node="n1",result="ok"} 3)",
           R"(sluice_plugin_registrations_total{node="n1",result="failed"} 2)",
           R"(sluice_plugin_allocations_total{node="n1",result="granted"} 5)",
           R"(sluice_plugin_allocations_total{node="n1",result="refused"} 1)",
           R"(sluice_plugin_allocations_total{node="n1",result="failed"} 0)",
           R"(sluice_plugin_allocate_seconds_bucket{node="n1",le="0.0005"} 0)",
           R"(sluice_plugin_allocate_seconds_bucket{node="n1",le="0.001"} 1)",
           R"(sluice_plugin_allocate_seconds_bucket{node="n1",le="+Inf"} 2)",
           R"(sluice_plugin_allocate_seconds_sum{node="n1"} 20.0006)",
           R"(sluice_plugin_devices{node="n1",gpu="0",UUID="GPU-a",state="healthy"} 10)",
           R"(sluice_plugin_devices{node="n1",gpu="0",UUID="GPU-a",state="withheld"} 2)",
           R"(sluice_plugin_devices{node="n1",gpu="1",UUID="GPU-b",state="unhealthy"} 12)",
           R"(sluice_plugin_grants{node="n1"} 6)",
           R"(sluice_plugin_events_total{node="n1",result="ok"} 4)",
       }) {
    EXPECT_NE(text.find(std::string("\n") + line + "\n"), std::string::npos) << line << "\n"
                                                                             << text;
  }
}

TEST(PluginMetrics, GrantsThatCannotBeReadAreNo0) {
  EXPECT_EQ(Text(Figures(), {}).find("sluice_plugin_grants"), std::string::npos);
}

TEST(PluginMetrics, OfEveryRowAreServed) {
  const Figures figures;
  std::set<std::string> served;
  for (const auto& family : MetricsOf("n1", figures, {{{"GPU-a", 1}}, {{1, 0, 0}}, 0})) {
    served.insert(family.name);
  }
  size_t rows = 0;
  for (const metrics::Group& group : MetricGroups()) {
    for (const metrics::Metric& metric : group.metrics) {
      EXPECT_TRUE(served.contains(metric.name)) << metric.name;
      ++rows;
    }
  }
  EXPECT_EQ(served.size(), rows);
}

}  // namespace
}  // namespace sluice::deviceplugin
