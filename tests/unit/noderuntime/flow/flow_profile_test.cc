// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/flow.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

constexpr uint32_t kLayers = 20;

class FlowProfileTest : public FlowTest {
 protected:
  /// A job that holds two units of base and `kLayers` for its iteration, measured.
  uint32_t Measured(JobId job) {
    Start(job);
    EXPECT_TRUE(Lease(job, 2).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    EXPECT_TRUE(Lease(job, kLayers).ok());
    const uint32_t profile = Measure(job, kLayers);
    EXPECT_NE(profile, 0u);
    return profile;
  }
  /// Gives back all but the base and goes to gate 0.
  void DrainToTrough(JobId job, uint32_t profile, uint64_t iteration = 0) {
    Extents held = flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
    Extents transient = scheduler::Subtract(held, {{0, 2}});
    std::vector<protocol::Extent> extents;
    for (const auto& extent : transient) extents.push_back({extent.offset, extent.length});
    if (!extents.empty()) {
      ASSERT_TRUE(Release(job, extents).ok());
    }
    ASSERT_TRUE(Gate(job, 0, profile, iteration).ok());
  }
};

TEST_F(FlowProfileTest, IsPublishedOnceItsLaunchesAreTimed) {
  Start(1);
  ASSERT_TRUE(Lease(1, 22).ok());
  bool asked = false;
  for (int i = 0; i < 40 && clients_[1].profile() == 0; ++i) {
    clients_[1].Iterate(kLayers, kUnit);
    Pass(5 * kMs);
    asked = asked || clients_[1].flag(protocol::kWantTimes);
  }
  EXPECT_TRUE(asked);
  auto image = std::make_unique<protocol::ProfileImage>();
  ASSERT_TRUE(protocol::ReadProfile(*clients_[1].daemon, image.get()));
  EXPECT_EQ(image->profile_id, 1u);
  EXPECT_EQ(image->period, 2 * kLayers);
  EXPECT_GE(image->gate_count, 2u);
  EXPECT_EQ(image->gates[0].launch, 0u);
  EXPECT_EQ(image->launch_ns[5], 50'000u);
  EXPECT_GT(image->credit_ns, 0u);
  EXPECT_FALSE(clients_[1].flag(protocol::kWantTimes));
}

TEST_F(FlowProfileTest, AnObservedJobsIterationIsRecorded) {
  JobSpec spec;
  spec.id = 1;
  spec.name = "watched";
  spec.observed = true;
  EXPECT_EQ(flow_->RecordingOf(1, now_).status().message(), "the job has not begun to use the GPU");
  flow_->Start(spec, clients_[1].pages(), now_);
  ASSERT_TRUE(Lease(1, 2 + kLayers).ok());
  EXPECT_EQ(flow_->RecordingOf(1, now_).status().message(), "the job launched nothing on the GPU");
  clients_[1].Push(protocol::OpKind::kAlloc, 2 * kUnit);
  clients_[1].Launch(1, false);
  EXPECT_EQ(flow_->RecordingOf(1, now_).status().message(),
            "no iteration was found in its 1 launches: it repeats nothing, or not often enough");
  ASSERT_NE(Measure(1, kLayers), 0u);
  for (int i = 0; i < 3; ++i) clients_[1].Iterate(kLayers, kUnit);
  // Without a tick: what the ring still holds counts.
  const Result<std::string> text = flow_->RecordingOf(1, now_);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const Result<scheduler::trace::BatchTrace> at = scheduler::trace::AtBatch(*trace, 1);
  ASSERT_TRUE(at.ok()) << at.status().message();
  EXPECT_EQ(at->costs.size(), 2 * kLayers);
  EXPECT_EQ(at->costs[3].ns, 50'000u);
  EXPECT_EQ(at->persistent_bytes + at->peak_bytes, (2 + kLayers) * kUnit);
  EXPECT_EQ(*trace->Find("model"), "watched");
}

TEST_F(FlowProfileTest, NobodyElsesIs) {
  Measured(1);
  for (int i = 0; i < 3; ++i) clients_[1].Iterate(kLayers, kUnit);
  EXPECT_EQ(flow_->RecordingOf(1, now_).status().message(), "the job was not to be observed");
}

TEST_F(FlowProfileTest, ARecordingWithAHoleIsNone) {
  JobSpec spec;
  spec.id = 1;
  spec.observed = true;
  flow_->Start(spec, clients_[1].pages(), now_);
  ASSERT_TRUE(Lease(1, 2 + kLayers).ok());
  ASSERT_NE(Measure(1, kLayers), 0u);
  for (int i = 0; i < 3; ++i) clients_[1].Iterate(kLayers, kUnit);
  ASSERT_TRUE(flow_->RecordingOf(1, now_).ok());
  ++clients_[1].client->lost;
  clients_[1].Iterate(kLayers, kUnit);
  EXPECT_FALSE(flow_->RecordingOf(1, now_).ok());
}

TEST_F(FlowProfileTest, ACreditThatWasGivenGoesBeforeTheProfiles) {
  options_.credit_ns = 750'000;
  Restart();
  Measured(1);
  auto image = std::make_unique<protocol::ProfileImage>();
  ASSERT_TRUE(protocol::ReadProfile(*clients_[1].daemon, image.get()));
  EXPECT_EQ(image->credit_ns, 750'000u);
}

TEST_F(FlowProfileTest, LowersALimitThatNobodyGave) {
  Measured(1);
  EXPECT_EQ(Known(1).limit, 25u) << "22 and a tenth, rounded up";
  EXPECT_EQ(clients_[1].daemon->limit_units.load(), 25u);
  EXPECT_EQ(sink_.notices[1], std::vector<std::string>{"limit is now 25.0 MiB"});
}

TEST_F(FlowProfileTest, TheTroughMeasuresTheBaseAndEndsThePressure) {
  const uint32_t profile = Measured(1);
  EXPECT_TRUE(clients_[1].flag(protocol::kPressure)) << "the base is not known yet";
  DrainToTrough(1, profile);
  EXPECT_EQ(Known(1).phase, Phase::kRunning) << "alone, it goes on at once";
  EXPECT_EQ(TotalUnits(Known(1).base), 2u);
  EXPECT_EQ(Known(1).request, 2u) << "the profiled base";
  ASSERT_GE(sink_.grants[1].size(), 3u);
  EXPECT_EQ(sink_.grants[1].back().gate, 0u);
  EXPECT_EQ(sink_.grants[1].back().profile, profile);
  EXPECT_GE(sink_.grants[1].back().claim, 22u);
  EXPECT_EQ(sink_.Count(EventKind::kTrough, 1), 1u);
  EXPECT_FALSE(clients_[1].flag(protocol::kPressure));
  EXPECT_FALSE(Known(1).terms.returns);
}

// Others count on what a job said it would give back.
TEST_F(FlowProfileTest, PressureAtTheGateLastsUntilTheNextTrough) {
  options_.lend_eagerly = true;
  Restart();
  const uint32_t profile = Measured(1);
  DrainToTrough(1, profile);
  EXPECT_TRUE(Known(1).terms.returns);
  // Not drained where it had to be: from here on it is taken to give nothing back.
  ASSERT_TRUE(Gate(1, 0, profile, 1, false).ok());
  EXPECT_EQ(sink_.Count(EventKind::kMismatch, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kTrough, 1), 2u);
}

TEST_F(FlowProfileTest, AGateTopsUpAndOneThatIsMetPasses) {
  const uint32_t profile = Measured(1);
  DrainToTrough(1, profile);
  auto image = std::make_unique<protocol::ProfileImage>();
  ASSERT_TRUE(protocol::ReadProfile(*clients_[1].daemon, image.get()));
  const Units before = Known(1).leased;
  EXPECT_EQ(before, std::max(image->gates[0].need_units, 2u));
  ASSERT_TRUE(Gate(1, 1, profile).ok());
  EXPECT_EQ(Known(1).leased, image->gates[1].need_units);
  EXPECT_EQ(TotalUnits(sink_.grants[1].back().extents), image->gates[1].need_units - before);
  ASSERT_TRUE(Gate(1, 1, profile).ok());
  EXPECT_TRUE(sink_.grants[1].back().extents.empty());
  EXPECT_FALSE(Gate(1, image->gate_count, profile).ok()) << "there is no such gate";
}

TEST_F(FlowProfileTest, ASecondJobBeginsWhileTheFirstIsParked) {
  const uint32_t profile = Measured(1);
  Start(2);
  ASSERT_TRUE(Lease(2, 4).ok());
  EXPECT_TRUE(sink_.grants[2].empty());
  DrainToTrough(1, profile);
  EXPECT_EQ(Known(1).phase, Phase::kParked);
  EXPECT_EQ(sink_.grants[2].size(), 1u);
  EXPECT_EQ(Known(2).limit, 38u) << "what the first one's base leaves";
  const size_t grants = sink_.grants[1].size();
  Pass(5 * kMs);
  EXPECT_EQ(sink_.grants[1].size(), grants) << "the second one is being measured";
}

TEST_F(FlowProfileTest, AMismatchWithdrawsTheProfile) {
  const uint32_t profile = Measured(1);
  DrainToTrough(1, profile);
  protocol::Mismatch mismatch = {};
  mismatch.profile = profile;
  ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
  EXPECT_EQ(clients_[1].profile(), 0u);
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  EXPECT_EQ(sink_.Count(EventKind::kMismatch, 1), 1u);
  // A gate of the old profile that was on its way is let through.
  const size_t grants = sink_.grants[1].size();
  ASSERT_TRUE(Gate(1, 1, profile).ok());
  EXPECT_EQ(sink_.grants[1].size(), grants + 1);
  EXPECT_EQ(Measure(1, kLayers), profile + 1) << "it is measured anew";
}

TEST_F(FlowProfileTest, FramesOfAProfileThatIsGoneAreBounded) {
  Start(1);
  size_t accepted = 0;
  while (accepted < 1000 && Gate(1, 0, 77).ok()) ++accepted;
  EXPECT_EQ(accepted, 64u);
}

/// A job that lives long loses many profiles, and each loss has a frame or two in flight.
TEST_F(FlowProfileTest, FramesOfManyLostProfilesAreNoFlood) {
  uint32_t profile = Measured(1);
  for (int loss = 0; loss < 70; ++loss) {
    protocol::Mismatch mismatch = {};
    mismatch.profile = profile;
    ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
    ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok()) << "loss " << loss;
    profile = Measure(1, 8);
    ASSERT_NE(profile, 0u);
  }
}

TEST_F(FlowProfileTest, AMismatchAtTheGateMakesItClaimItsLimit) {
  const uint32_t first = Measured(1);
  Start(2);
  DrainToTrough(1, first);
  ASSERT_EQ(Known(2).phase, Phase::kUnprofiled);
  protocol::Mismatch mismatch = {};
  mismatch.profile = first;
  ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
  EXPECT_EQ(Known(1).phase, Phase::kParked);
  flow_->Die(2, now_);
  flow_->HolderGone(2, now_);
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  EXPECT_EQ(Known(1).terms.claim, Known(1).limit);
  EXPECT_EQ(sink_.grants[1].back().gate, 0u);
}

TEST_F(FlowProfileTest, LostRecordsWithdrawTheProfile) {
  Measured(1);
  clients_[1].client->lost.store(1);
  Pass(5 * kMs);
  EXPECT_EQ(clients_[1].profile(), 0u);
}

TEST_F(FlowProfileTest, NonsenseInTheRingIsSurvived) {
  Start(1);
  clients_[1].Push(static_cast<protocol::OpKind>(99), 1);
  clients_[1].Push(protocol::OpKind::kAlloc, ~uint64_t{0});
  clients_[1].client->head.store(~uint64_t{0} / 2);
  Pass(5 * kMs);
  clients_[1].client->head.store(2);
  Pass(5 * kMs);
  EXPECT_EQ(flow_->Find(1)->profiler.live_bytes(), 0u);
}

// A job that says it has drained while its releases are not fenced has not.
TEST_F(FlowProfileTest, DrainedIsBelievedOnlyWhenItsFencesAreReached) {
  const uint32_t profile = Measured(1);
  ASSERT_TRUE(Release(1, {{20, 2}}, {{0, 0, 1}}).ok());
  ASSERT_TRUE(Gate(1, 0, profile, 0, true).ok());
  EXPECT_TRUE(Known(1).base.empty());
  for (const auto& record : sink_.records) {
    EXPECT_FALSE(record.event == EventKind::kTrough && record.drained);
  }
}

}  // namespace
}  // namespace sluice::flow
