// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/iteration_times.h"

#include <gtest/gtest.h>

namespace sluice::flow {
namespace {

TEST(IterationTimes, LeavesOutWhatTheJobWaited) {
  IterationTimes times;
  EXPECT_EQ(times.shortest_ns(), 0u);
  times.Waited(500);  // for its gate
  times.Open(1000);
  times.Waited(30);
  times.Waited(20);
  times.End(1250);
  EXPECT_EQ(times.ended(), 1u);
  EXPECT_EQ(times.last_end_ns(), 1250u);
  EXPECT_EQ(times.shortest_ns(), 200u);
}

TEST(IterationTimes, KeepsTheShortest) {
  IterationTimes times;
  uint64_t now = 0;
  for (const uint64_t took : {300u, 100u, 200u}) {
    times.Open(now);
    times.End(now += took);
  }
  EXPECT_EQ(times.shortest_ns(), 100u);
  EXPECT_EQ(times.ended(), 3u);
  times.Forget();
  EXPECT_EQ(times.shortest_ns(), 0u);
  EXPECT_EQ(times.ended(), 3u) << "the count never falls";
}

TEST(IterationTimes, AnEndWithoutABeginningHasNoLength) {
  IterationTimes times;
  times.End(500);
  EXPECT_EQ(times.ended(), 1u);
  EXPECT_EQ(times.last_end_ns(), 500u);
  EXPECT_EQ(times.shortest_ns(), 0u);
}

}  // namespace
}  // namespace sluice::flow
