// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metric_table.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace sluice::gateway {
namespace {

TEST(MetricGroups, AreNamedAsPrometheusWants) {
  std::set<std::string> names;
  for (const metrics::Group& group : MetricGroups()) {
    EXPECT_TRUE(std::string(group.labels).starts_with("node, gpu")) << group.title;
    for (const metrics::Metric& metric : group.metrics) {
      const std::string name = metric.name;
      EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
      EXPECT_TRUE(std::regex_match(name, std::regex("sluice(_[a-z]+)+"))) << name;
      EXPECT_EQ(metric.type == metrics::Type::kCounter, name.ends_with("_total")) << name;
      EXPECT_TRUE(metric.type != metrics::Type::kHistogram || name.ends_with("_seconds")) << name;
      EXPECT_EQ(std::string(metric.help).find_first_of("|\n"), std::string::npos) << name;
      EXPECT_NE(std::string(metric.help), "") << name;
    }
  }
}

}  // namespace
}  // namespace sluice::gateway
