// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/frontier_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/frontier_policies.h"

namespace sluice::bench {
namespace {

/// Every mix of a regime, with as much of the gain kept everywhere.
RegimeRows Kept(char regime, double retained) {
  RegimeRows rows{regime, {}};
  for (const Mix& mix : Mixes()) {
    Row row;
    row.mix = mix.name;
    row.jobs = mix.models.size();
    row.temporal = 1;
    row.unlimited = 1.2;
    for (Line& line : row.lines) {
      for (size_t p = 0; p < kFrontierPoolCount; ++p) {
        line.retained[p] = retained;
        line.throughput[p] = 1 + retained * 0.2;
      }
    }
    rows.rows.push_back(row);
  }
  return rows;
}

PolicyRow Of(double flow, double timeshift, double tuned, double unlimited = 1.2) {
  PolicyRow row;
  row.mix = "2 of them";
  row.jobs = 2;
  row.unlimited = unlimited;
  row.lines = {{"flow", {}, {}}, {"timeshift", {}, {}}};
  for (size_t p = 0; p < kFrontierPoolCount; ++p) {
    row.lines[0].throughput[p] = flow;
    row.lines[1].throughput[p] = timeshift;
    row.tuned[p] = tuned;
  }
  return row;
}

TEST(Missed, NothingWhereAllIsKept) { EXPECT_TRUE(Missed(Kept('A', 1)).empty()); }

TEST(Missed, NamesEachGoalThatIs) {
  RegimeRows rows = Kept('A', 1);
  rows.rows[3].lines[2].retained[1] = 0.2;  // the worst mix; the mean is far above its goal
  ASSERT_EQ(Missed(rows).size(), 1u);
  EXPECT_EQ(Missed(rows)[0], "A: auto, worst retained gain at 1.10: 0.200, goal 0.38");
  rows.rows[3].lines[2].throughput[1] = 0.97;
  EXPECT_EQ(Missed(rows).size(), 2u) << "and nothing may be slower than taking turns";
}

TEST(Missed, JudgesNoMeanOfSomeMixes) {
  RegimeRows rows = Kept('A', 0);
  EXPECT_FALSE(Missed(rows).empty());
  while (rows.rows.size() > 2) rows.rows.pop_back();
  EXPECT_TRUE(Missed(rows).empty());
}

TEST(WorseThanBest, FindsWhereTheSearchFoundTooLittle) {
  EXPECT_TRUE(WorseThanBest('A', {Of(1.10, 1.20, 1.15)}).empty());
  const auto worse = WorseThanBest('A', {Of(1.10, 1.20, 1.15), Of(1.30, 1.20, 1.22)});
  ASSERT_EQ(worse.size(), kFrontierPoolCount);
  EXPECT_EQ(worse[2], "A: 2 of them, auto at 1.25: 0.938 of the best that was found, goal 0.95");
}

TEST(WorseThanBest, CountsTakingTurnsAmongThePolicies) {
  EXPECT_EQ(Of(0.8, 0.7, 0.9).Best(0), 1);
  EXPECT_EQ(WorseThanBest('Z', {Of(0.8, 0.7, 0.9)}).size(), kFrontierPoolCount);
}

TEST(PolicyTable, AveragesWhatIsWorthIt) {
  const std::string text = PolicyTable('A', {Of(1.1, 1.2, 1.2), Of(1.1, 1.0, 1.1, 1.01)});
  EXPECT_NE(text.find("mean retained gain    0.50 0.50 0.50 0.50    1.00 1.00 1.00 1.00"),
            std::string::npos)
      << text;
  const std::string none = PolicyTable('Z', {Of(1.0, 1.0, 1.0, 1.01)});
  EXPECT_NE(none.find("mean retained gain       -    -    -    -"), std::string::npos) << none;
}

}  // namespace
}  // namespace sluice::bench
