// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_timeline.h"

#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

using scheduler::EventKind;
using scheduler::Extents;
using scheduler::JobId;
using scheduler::Record;
using Points = std::vector<std::pair<double, double>>;

Record At(double ms, EventKind event, JobId job, Extents extents = {}) {
  Record record;
  record.t_ns = static_cast<uint64_t>(ms * 1e6);
  record.event = event;
  record.job = job;
  record.extents = std::move(extents);
  return record;
}

/// A pool of ten units of a GB each. Job 1 has two of them at its trough and twice four more; job 2
/// comes at 5 ms; job 3 nobody asks about.
std::vector<Record> TwoIterations() {
  std::vector<Record> records;
  Record pool = At(0, EventKind::kPool, scheduler::kNoJob);
  pool.units = 10;
  pool.unit_bytes = 1'000'000'000;
  records.push_back(pool);
  for (const JobId job : {1u, 2u, 3u}) {
    Record admit = At(0, EventKind::kAdmit, job);
    admit.limit = 6;
    records.push_back(admit);
  }
  const auto gate = [&](double ms, JobId job, Extents extents) {
    Record record = At(ms, EventKind::kGate, job, std::move(extents));
    record.claim = 6;
    record.profiled = record.returns = true;
    records.push_back(record);
  };
  const auto release = [&](double ms, JobId job, Extents extents, uint64_t number) {
    records.push_back(At(ms, EventKind::kRelease, job, std::move(extents)));
    records.back().release = number;
    records.push_back(At(ms, EventKind::kFenced, job));
    records.back().release = number;
  };
  const auto trough = [&](double ms, JobId job) {
    records.push_back(At(ms, EventKind::kTrough, job));
    records.back().drained = true;
  };
  gate(0, 3, {{9, 1}});
  gate(1, 1, {{0, 6}});
  release(3, 1, {{2, 4}}, 1);
  trough(4, 1);
  gate(5, 2, {{6, 1}});
  gate(7, 1, {{2, 4}});
  release(8, 1, {{2, 4}}, 2);
  trough(9, 1);
  return records;
}

TEST(PapersTimeline, HoldsStepByStep) {
  const auto series = HeldOverTime(TwoIterations(), {"a", "b"}, {0, 6e6});
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].name, "a");
  // What was given back is spare, and the job's, until its trough.
  EXPECT_EQ(series[0].points, (Points{{0, 0}, {1, 0}, {1, 6}, {4, 6}, {4, 2}, {6, 2}}));
  EXPECT_EQ(series[1].points, (Points{{0, 0}, {5, 0}, {5, 1}, {6, 1}}));
  EXPECT_EQ(series[2].name, "all");
  EXPECT_EQ(series[2].points,
            (Points{{0, 0}, {1, 0}, {1, 6}, {4, 6}, {4, 2}, {5, 2}, {5, 3}, {6, 3}}));
}

TEST(PapersTimeline, AWindowBeginsWithWhatIsHeldThen) {
  const auto series = HeldOverTime(TwoIterations(), {"a", "b"}, {2e6, 5e6});
  EXPECT_EQ(series[0].points, (Points{{0, 6}, {2, 6}, {2, 2}, {3, 2}}));
  EXPECT_EQ(series[1].points, (Points{{0, 0}, {3, 0}})) << "what comes with its end is behind it";
}

TEST(PapersTimeline, WithoutAPoolNothingIsHeld) {
  const auto series = HeldOverTime({}, {"a"}, {0, 1e6});
  ASSERT_EQ(series.size(), 2u);
  EXPECT_TRUE(series[0].points.empty());
}

TEST(PapersTimeline, GapsAreBetweenATroughAndTheNextIteration) {
  const std::vector<Record> records = TwoIterations();
  EXPECT_EQ(MeanGapNs(records, {0, 10e6}), 3e6) << "of the one that begins at 7 ms";
  EXPECT_EQ(MeanGapNs(records, {0, 6e6}), 0);
  EXPECT_EQ(IterationsIn(records, 1, {0, 10e6}), 2u);
  EXPECT_EQ(IterationsIn(records, 1, {2e6, 10e6}), 1u);
  EXPECT_EQ(IterationsIn(records, 2, {0, 10e6}), 1u);
}

}  // namespace
}  // namespace sluice::bench
