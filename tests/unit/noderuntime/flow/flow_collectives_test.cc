// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs whose kernels wait for other GPUs': gated at their troughs alone, and not at all where two
// of them meet.
#include <algorithm>

#include "noderuntime/flow/flow.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;

class FlowCollectivesTest : public FlowTest {
 protected:
  /// With its base leased.
  void Begin(JobId job, Units limit, Units request = 0) {
    Start(job, limit, request);
    ASSERT_TRUE(Lease(job, 2).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    Pass(5 * kMs);
  }
  void LaunchCollectives(JobId job) {
    clients_[job].client->collectives.store(1);
    Pass(5 * kMs);
  }
  size_t GatesOf(JobId job) const {
    const FlowJob* known = flow_->Find(job);
    return known->published.has_value() ? known->published->plan.gates.size() : 0;
  }
  size_t Told(JobId job, const std::string& part) {
    return static_cast<size_t>(std::count_if(
        sink_.notices[job].begin(), sink_.notices[job].end(),
        [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  /// To its trough, where it holds its base, and behind the gate there if that opens.
  void PassGate0(JobId job) {
    std::vector<protocol::Extent> rest;
    Units kept = 0;
    for (const auto& extent : flow_->ledger().map().Held(job, scheduler::UnitState::kLeased)) {
      for (Units unit = extent.offset; unit < extent.end(); ++unit) {
        if (++kept > 2) rest.push_back({unit, 1});
      }
    }
    if (!rest.empty()) {
      ASSERT_TRUE(Release(job, rest).ok());
    }
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), ++iterations_[job]).ok());
    Pass(5 * kMs);
  }
  void ExpectSoundLog() {
    const auto report = scheduler::Audit(sink_.records);
    EXPECT_TRUE(report.violations.empty()) << report.violations.front().text;
  }

  std::map<JobId, uint64_t> iterations_;
};

TEST_F(FlowCollectivesTest, WaitsAtItsTroughAlone) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  LaunchCollectives(1);
  EXPECT_EQ(Told(1, "collective operations"), 1u);
  ASSERT_NE(Measure(1, 10), 0u);
  EXPECT_EQ(GatesOf(1), 1u);
  const FlowJob& job = *flow_->Find(1);
  EXPECT_GE(job.published->plan.gates.front().need_units, 12u) << "all that it needs at once";
  Pass(1 * kS);
  EXPECT_EQ(Told(1, "collective operations"), 1u) << "said once";
}

TEST_F(FlowCollectivesTest, WhoBeginsThemLateLosesItsOtherGates) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  const uint32_t before = Measure(1, 10);
  ASSERT_GT(GatesOf(1), 1u);
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  LaunchCollectives(1);
  EXPECT_EQ(GatesOf(1), 1u);
  EXPECT_NE(clients_[1].profile(), before);
  const auto left = std::find_if(sink_.records.begin(), sink_.records.end(),
                                 [](const Record& r) { return r.event == EventKind::kMismatch; });
  ASSERT_NE(left, sink_.records.end());
  EXPECT_EQ(left->reason, "collectives");
  ExpectSoundLog();
}

/// On the other GPU it may be the newcomer that is in its iteration, waiting for this job.
TEST_F(FlowCollectivesTest, WaitsForNobodysMeasurementWhereThereIsRoomForAll) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  LaunchCollectives(1);
  ASSERT_NE(Measure(1, 10), 0u);
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(Begin(2, 18, 4));
  ASSERT_EQ(Known(2).phase, Phase::kUnprofiled) << "it is measured";
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  ExpectSoundLog();
}

TEST_F(FlowCollectivesTest, WaitsForItWhereThereIsNot) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 30, 4));
  LaunchCollectives(1);
  ASSERT_NE(Measure(1, 10), 0u);
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(Begin(2, 30, 4));
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  EXPECT_EQ(Known(2).phase, Phase::kUnprofiled);
  EXPECT_EQ(Known(1).phase, Phase::kParked);
  EXPECT_EQ(ReasonName(flow_->WaitsBecause(1)), "measurement");
  ExpectSoundLog();
}

/// In its first iteration it may wait for its other rank, which is a newcomer elsewhere.
TEST_F(FlowCollectivesTest, ANewcomerBeginsBesideAQuietOneWhereThereIsRoomForAll) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  LaunchCollectives(1);
  ASSERT_NO_FATAL_FAILURE(Begin(2, 18, 4));
  EXPECT_EQ(Known(2).phase, Phase::kWaiting);
  Pass(options_.patience.quiet_ns / 2);
  EXPECT_EQ(Known(2).phase, Phase::kWaiting);
  Pass(options_.patience.quiet_ns);
  EXPECT_EQ(Known(2).phase, Phase::kUnprofiled);
  EXPECT_FALSE(Known(1).settled) << "it is still measured";
  ExpectSoundLog();
}

/// The log has to say why the newcomer may begin, whatever became known first.
TEST_F(FlowCollectivesTest, AndBesideOneThatTurnsOutToHaveThemWhileItIsQuiet) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  ASSERT_NO_FATAL_FAILURE(Begin(2, 18, 4));
  Pass(options_.patience.quiet_ns * 2);
  ASSERT_TRUE(Known(1).quiet);
  ASSERT_EQ(Known(2).phase, Phase::kWaiting);
  LaunchCollectives(1);
  EXPECT_EQ(Known(2).phase, Phase::kUnprofiled);
  ExpectSoundLog();
}

TEST_F(FlowCollectivesTest, AndNotWhereThereIsNoneOrNothingIsKnownOfCollectives) {
  for (const bool collectives : {true, false}) {
    Restart();
    clients_.clear();
    ASSERT_NO_FATAL_FAILURE(Begin(1, collectives ? 30 : 20, 4));
    if (collectives) LaunchCollectives(1);
    ASSERT_NO_FATAL_FAILURE(Begin(2, collectives ? 30 : 18, 4));
    Pass(options_.patience.quiet_ns * 2);
    EXPECT_EQ(Known(2).phase, Phase::kWaiting) << collectives;
  }
}

/// Known before the daemon has admitted it, and after it was replaced.
TEST_F(FlowCollectivesTest, TheLedgerKnowsItAsSoonAsTheJob) {
  clients_[1].client->collectives.store(1);
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  EXPECT_TRUE(Known(1).collective);
}

/// Its last session has died, and somebody still holds that one's memory.
TEST_F(FlowCollectivesTest, ASessionBehindADeadOneIsNotTheOneInTheLedger) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20));
  ASSERT_TRUE(flow_->Die(1, now_));
  ASSERT_EQ(Known(1).phase, Phase::kDying);
  clients_.erase(1);
  Start(1, 20);
  LaunchCollectives(1);
  EXPECT_FALSE(Known(1).collective);
  flow_->HolderGone(1, now_);
  Pass(5 * kMs);
  EXPECT_TRUE(Known(1).collective) << "admitted now";
}

TEST_F(FlowCollectivesTest, JobsOfOneGpuKeepTheirGatesBesideThem) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 18, 2));
  ASSERT_NE(Measure(1, 10), 0u);
  const size_t gates = GatesOf(1);
  ASSERT_GT(gates, 1u);
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(PassGate0(1));
  ASSERT_NO_FATAL_FAILURE(Begin(2, 18, 2));
  LaunchCollectives(2);
  ASSERT_NE(Measure(2, 10), 0u);
  EXPECT_EQ(GatesOf(2), 1u);
  EXPECT_EQ(GatesOf(1), gates);
  ExpectSoundLog();
}

}  // namespace
}  // namespace sluice::flow
