// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs whose library puts scattered units side by side: any units do for what they were promised.
#include <algorithm>

#include "scheduler/audit/audit.h"
#include "scheduler/safety/safety.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

class FlowStitchesTest : public FlowTest {
 protected:
  void StartOne(JobId job, Units limit, bool stitches) {
    JobSpec spec{job, "job" + std::to_string(job), limit, 0};
    spec.stitches = stitches;
    flow_->Start(spec, clients_[job].pages(), now_);
  }
  Status LeaseIfThere(JobId job, Units units) {
    protocol::Lease lease{};
    lease.header.flags = protocol::kIfThere;
    lease.units = lease.contiguous = units;
    return flow_->OnLease(job, lease, now_);
  }
  /// Every second of so many units, which leaves the others free.
  void Scatter(JobId job, Units units) {
    ASSERT_TRUE(Lease(job, units).ok());
    std::vector<protocol::Extent> odd;
    const Extents held = flow_->ledger().map().Held(job);
    for (Units unit = held.front().offset + 1; unit < held.front().end(); unit += 2)
      odd.push_back({unit, 1});
    ASSERT_TRUE(Release(job, odd).ok());
    Pass(5 * kMs);
  }
  void ExpectSoundLog() {
    const auto report = scheduler::Audit(sink_.records);
    EXPECT_TRUE(report.violations.empty()) << report.violations.front().text;
  }
};

TEST_F(FlowStitchesTest, WithoutARunTheAnswerComesAtOnce) {
  StartOne(1, 0, true);
  Scatter(1, 40);
  ASSERT_TRUE(LeaseIfThere(1, 4).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(sink_.denials[1].back().first, protocol::DenyCode::kNoRun);
  EXPECT_EQ(sink_.Count(EventKind::kDeny, 1), 0u) << "nothing was refused";
  EXPECT_EQ(sink_.Count(EventKind::kWait, 1), 0u);
  // In pieces it has them.
  const size_t granted = sink_.grants[1].size();
  ASSERT_TRUE(Lease(1, 4, 1).ok());
  ASSERT_EQ(sink_.grants[1].size(), granted + 1);
  EXPECT_EQ(TotalUnits(sink_.grants[1].back().extents), 4u);
  ExpectSoundLog();
}

TEST_F(FlowStitchesTest, ARunThatIsThereIsGranted) {
  StartOne(1, 0, true);
  Scatter(1, 20);
  ASSERT_TRUE(LeaseIfThere(1, 6).ok());
  ASSERT_FALSE(sink_.grants[1].empty());
  ASSERT_EQ(sink_.grants[1].back().extents.size(), 1u);
  EXPECT_EQ(sink_.grants[1].back().extents.front().length, 6u);
}

// Blocks of pieces end inside units more often than blocks of runs (docs/adr/0037).
TEST_F(FlowStitchesTest, ItsGatesAskForMore) {
  Units peak[2] = {};
  for (const bool stitches : {false, true}) {
    Restart();
    clients_.clear();
    StartOne(1, 0, stitches);
    ASSERT_TRUE(Lease(1, 2).ok());
    clients_[1].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    ASSERT_TRUE(Lease(1, 32).ok());
    ASSERT_NE(Measure(1, 32), 0u);
    peak[stitches] = flow_->Find(1)->published->plan.peak_units;
  }
  EXPECT_EQ(peak[false], 36u + 1u) << "34 live";
  EXPECT_EQ(peak[true], 36u + 2u);
}

TEST_F(FlowStitchesTest, PastItsClaimItIsToldBesideOthers) {
  StartOne(1, 20, true);
  ASSERT_TRUE(Lease(1, 16).ok());
  StartOne(2, 0, true);
  ASSERT_TRUE(LeaseIfThere(1, 6).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(sink_.denials[1].back().first, protocol::DenyCode::kNoRun);
}

TEST_F(FlowStitchesTest, WhoBeginsIsGrantedWhatLiesApart) {
  StartOne(1, 0, true);
  EXPECT_TRUE(flow_->ledger().Find(1)->stitches);
  ASSERT_TRUE(Lease(1, 2, 2).ok());
  EXPECT_EQ(flow_->ledger().Find(1)->terms.piece, 1u);
  StartOne(2, 0, false);
  EXPECT_FALSE(flow_->ledger().Find(2)->stitches);
}

/// Packed behind its gates it may need a block more than when it was measured, wherever its units
/// lie.
TEST_F(FlowStitchesTest, ItsClaimHasRoomForABlockMore) {
  constexpr uint32_t kLayers = 2;
  constexpr Units kBase = 2, kBlock = 10, kPeak = kBase + kLayers * kBlock;
  StartOne(1, 40, true);
  ASSERT_TRUE(Lease(1, kBase).ok());
  clients_[1].Push(protocol::OpKind::kAlloc, kBase * kUnit);
  ASSERT_TRUE(Lease(1, kPeak - kBase).ok());
  for (int i = 0; i < 64 && clients_[1].profile() == 0; ++i) {
    clients_[1].Iterate(kLayers, kBlock * kUnit);
    Pass(5 * kMs);
  }
  ASSERT_TRUE(Release(1, {{kBase, kPeak - kBase}}).ok());
  ASSERT_TRUE(Gate(1, 0, clients_[1].profile(), 0).ok());
  EXPECT_GE(sink_.grants[1].back().claim, kPeak + kBlock);
  EXPECT_EQ(Known(1).terms.piece, 1u);
}

/// Runs of one, and as many units as both were promised: with runs it would be stuck.
TEST_F(FlowStitchesTest, SumsAreAllThatCounts) {
  StartOne(1, 0, true);
  Scatter(1, 40);
  const scheduler::Job& job = *flow_->ledger().Find(1);
  EXPECT_EQ(job.held(), 20u);
  for (const scheduler::Extent& run : flow_->ledger().map().FreeRuns()) EXPECT_EQ(run.length, 1u);
  EXPECT_TRUE(scheduler::IsSafe(flow_->ledger()));
  ExpectSoundLog();
}

}  // namespace
}  // namespace sluice::flow
