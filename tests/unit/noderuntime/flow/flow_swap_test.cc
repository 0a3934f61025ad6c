// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs at their trough, to host memory and back by turns.
#include "tests/unit/noderuntime/flow/flow_moves.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::UnitState;

constexpr uint64_t kSlice = 5'000'000'000;

class FlowSwapTest : public FlowMovesTest {
 protected:
  /// Two jobs with profiles, in their iterations; of both one base may be in the pool from now on.
  void BothInTheirIterations() {
    Ready(1);
    Start(2, 30, kBase);
    ToGateZero(1);
    Ready(2);
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
    ASSERT_EQ(Known(2).phase, Phase::kRunning);
    Residents(1);
    ASSERT_TRUE(sink_.quiesced.empty()) << "nobody is at its trough";
  }
  void Residents(uint32_t residents) {
    Way way = flow_->way();
    way.residents = residents;
    way.slice_ns = kSlice;
    ASSERT_TRUE(flow_->SetWay(way, now_).ok());
  }
  void ToGateZero(JobId job) {
    answers_[job] = sink_.grants[job].size();
    FlowMovesTest::ToGateZero(job);
    asked_[job] = seq_;
  }
  Status Quiet(JobId job, protocol::QuietReason reason = protocol::QuietReason::kQuiet) {
    protocol::Quiet frame = {};
    frame.header.seq = asked_[job];
    frame.reason = static_cast<uint32_t>(reason);
    return flow_->OnQuiet(job, frame, now_);
  }
  /// The first job's base is in host memory.
  void FirstIsAway() {
    ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
    ToGateZero(1);
    ASSERT_TRUE(Quiet(1).ok());
    flow_->OnMoved(1, Status(), now_);
    ASSERT_EQ(Known(1).phase, Phase::kEvicted);
  }
  bool Opened(JobId job) { return sink_.grants[job].size() > answers_[job]; }

  std::map<JobId, size_t> answers_;
  std::map<JobId, uint32_t> asked_;
};

TEST_F(FlowSwapTest, GoesAtItsTroughAndComesBackAfterItsSlice) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  ToGateZero(1);
  ASSERT_EQ(sink_.quiesced[1], asked_[1]);
  EXPECT_TRUE(sink_.moved_out.empty()) << "others of its threads may compute";
  ASSERT_TRUE(Quiet(1).ok());
  EXPECT_EQ(sink_.moved_out[1], base_[1]) << "all that it has";
  EXPECT_EQ(Leased(1), base_[1]) << "nothing is lent before it is copied";
  flow_->OnMoved(1, Status(), now_);
  EXPECT_EQ(Known(1).held(), 0u);
  for (const auto& extent : base_[1]) EXPECT_EQ(sink_.holders[extent.offset], scheduler::kNoJob);
  EXPECT_TRUE(sink_.notices[1].empty()) << "it is nothing that a program has to be told";
  for (int i = 0; i < 10; ++i) {
    ToGateZero(2);
    EXPECT_TRUE(Opened(2)) << "however often, within the slice";
  }
  Pass(kSlice / 2);
  EXPECT_TRUE(sink_.moved_back.empty());
  Pass(kSlice);
  EXPECT_EQ(sink_.moved_back, (std::vector<JobId>{1})) << "its place is free";
  EXPECT_EQ(Leased(1), base_[1]);
  for (const auto& extent : base_[1]) EXPECT_EQ(sink_.holders[extent.offset], 1u);
  EXPECT_FALSE(Opened(1)) << "it is not there yet";
  flow_->OnMoved(1, Status(), now_);
  EXPECT_TRUE(Opened(1));
  ToGateZero(2);
  EXPECT_EQ(sink_.quiesced[2], asked_[2]) << "and another one goes instead";
  EXPECT_EQ(flow_->Find(1)->evictions, 0u) << "it did not leave its claim";
  EXPECT_EQ(sink_.Count(EventKind::kEvict, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kBringBack, 1), 1u);
  ExpectSoundLog();
}

TEST_F(FlowSwapTest, WhereAllMayStayNobodyIsAsked) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  Residents(2);
  ToGateZero(1);
  EXPECT_TRUE(Opened(1));
  EXPECT_TRUE(sink_.quiesced.empty());
}

TEST_F(FlowSwapTest, WithoutHostMemoryNobodyIsAsked) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  sink_.host = false;
  ToGateZero(1);
  EXPECT_TRUE(Opened(1));
  EXPECT_TRUE(sink_.quiesced.empty());
}

/// It loses nothing but its turn, and is left alone for a slice: to ask costs it time.
TEST_F(FlowSwapTest, WhoCannotBeMadeQuietGoesOn) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  ToGateZero(1);
  ASSERT_TRUE(Quiet(1, protocol::QuietReason::kCapturing).ok());
  EXPECT_TRUE(Opened(1));
  EXPECT_TRUE(sink_.notices[1].empty());
  ToGateZero(1);
  EXPECT_TRUE(Opened(1)) << "it is not asked again";
  Pass(kSlice);
  ToGateZero(1);
  EXPECT_EQ(sink_.quiesced[1], asked_[1]);
}

TEST_F(FlowSwapTest, ACopyOutThatFailsCostsNothing) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  ToGateZero(1);
  ASSERT_TRUE(Quiet(1).ok());
  flow_->OnMoved(1, Status(StatusCode::kInternal, "the driver says no"), now_);
  EXPECT_TRUE(Opened(1));
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  EXPECT_TRUE(sink_.denials[1].empty());
}

TEST_F(FlowSwapTest, ACopyBackThatFailsEndsTheSession) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  Pass(kSlice);
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(StatusCode::kInternal, "the driver says no"), now_);
  EXPECT_NE(sink_.ended[1].find("the driver says no"), std::string::npos);
  EXPECT_FALSE(Opened(1));
}

TEST_F(FlowSwapTest, WhoDiesMeanwhileIsForgotten) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  EXPECT_FALSE(flow_->Die(1, now_)) << "it has nothing that a last holder could keep";
  EXPECT_EQ(sink_.dropped, (std::vector<JobId>{1}));
  EXPECT_EQ(flow_->ledger().Find(1), nullptr);
  ToGateZero(2);
  EXPECT_TRUE(Opened(2));
  EXPECT_TRUE(sink_.quiesced.count(2) == 0) << "it is alone";
  ExpectSoundLog();
}

/// Its base would be lent to others under the copy.
TEST_F(FlowSwapTest, WhoGivesBackWhatIsMovedBreaksTheRules) {
  ASSERT_NO_FATAL_FAILURE(BothInTheirIterations());
  ToGateZero(1);
  ASSERT_TRUE(Quiet(1).ok());
  ExpectNothingIsTakenBack(1, base_[1]);
  flow_->OnMoved(1, Status(), now_);
  ASSERT_EQ(Known(1).phase, Phase::kEvicted);
  ExpectNothingIsTakenBack(1, base_[1]);
  Pass(kSlice);
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  ExpectNothingIsTakenBack(1, base_[1]);
  EXPECT_EQ(Leased(1), base_[1]);
  flow_->OnMoved(1, Status(), now_);
  EXPECT_TRUE(Opened(1));
  ExpectSoundLog();
}

TEST_F(FlowSwapTest, WhoIsAwayIsInsured) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  EXPECT_TRUE(flow_->EverybodyInsured());
}

/// Another thread of it may have gone on to ask for memory outside the pool.
TEST_F(FlowSwapTest, WhoGetsMoreElsewhereMeanwhileStillComesBack) {
  options_.outside_bytes = 40 * kUnit;
  sink_ = RecordingSink();
  sink_.host = true;
  flow_ = std::make_unique<Flow>(options_, &sink_);
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  ASSERT_TRUE(Charge(1, protocol::Family::kArray, 27 * kUnit).ok());
  ToGateZero(2);
  Pass(2 * kSlice);
  EXPECT_TRUE(sink_.denials[1].empty()) << "what it has would be lost";
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  EXPECT_EQ(Leased(1), base_[1]);
  flow_->OnMoved(1, Status(), now_);
  ExpectSoundLog();
}

/// Its library has one question at a time, and that one waits.
TEST_F(FlowSwapTest, WhoAsksWhileItIsAwayBreaksTheRules) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  EXPECT_FALSE(Gate(1, 0, profile_[1] + 99, 5).ok());
  EXPECT_FALSE(Gate(1, 0, profile_[1], 5).ok());
  EXPECT_FALSE(Lease(1, 1).ok());
  Pass(2 * kSlice);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1})) << "and loses nothing by it";
  EXPECT_FALSE(Lease(1, 1).ok());
}

/// A neighbour that lost its profile and computes nothing is never at its trough again, perhaps.
TEST_F(FlowSwapTest, ComesBackBesideANeighbourWithoutAProfile) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  protocol::Mismatch mismatch = {};
  mismatch.profile = profile_[2];
  ASSERT_TRUE(flow_->OnMismatch(2, mismatch, now_).ok());
  ASSERT_EQ(Known(2).phase, Phase::kUnprofiled);
  Pass(20 * kMs);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1})) << "before its slice has passed";
  flow_->OnMoved(1, Status(), now_);
  Pass(60 * kS);
  EXPECT_TRUE(Opened(1)) << "beside one that is quiet";
  ExpectSoundLog();
}

/// A checkpoint, an evaluation: it takes up no room of those who go on.
TEST_F(FlowSwapTest, BesideOneThatStandsStillNobodyIsMoved) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  Pass(60 * kS);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  ASSERT_TRUE(Known(2).quiet) << "that it stands still shows when somebody waits";
  sink_.moved_out.clear();
  for (int i = 0; i < 20; ++i) {
    ToGateZero(1);
    EXPECT_TRUE(Opened(1));
  }
  EXPECT_TRUE(sink_.moved_out.empty());
}

/// A newcomer begins when everybody is back: what it keeps might be another one's place.
TEST_F(FlowSwapTest, ANewcomerBringsEverybodyBack) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  Start(3, 30, kBase);
  ASSERT_TRUE(Lease(3, kBase).ok());
  EXPECT_EQ(Known(3).phase, Phase::kWaiting);
  ToGateZero(2);
  EXPECT_EQ(sink_.moved_back, (std::vector<JobId>{1})) << "long before its slice has passed";
  EXPECT_TRUE(sink_.quiesced.count(2) == 0) << "nobody goes meanwhile";
  flow_->OnMoved(1, Status(), now_);
  for (const JobId job : {1u, 2u}) {
    if (Known(job).phase == Phase::kRunning) ToGateZero(job);
  }
  EXPECT_EQ(Known(3).phase, Phase::kUnprofiled);
  ExpectSoundLog();
}

TEST_F(FlowSwapTest, ComesBackWhileTheBudgetFalls) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  ASSERT_TRUE(flow_->SetBudget(36, now_).ok());
  ToGateZero(2);
  Pass(20 * kMs);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  Pass(20 * kMs);
  EXPECT_EQ(flow_->budget(), 36u) << flow_->budget_refusal();
  ExpectSoundLog();
}

/// Whoever was away where another way comes into force has its turn there.
TEST_F(FlowSwapTest, ComesBackWhereAllMayStayAgain) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  Residents(0);
  ToGateZero(2);
  EXPECT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  ExpectSoundLog();
}

TEST_F(FlowSwapTest, EverybodyComesBackWhereTheDaemonEnds) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  flow_->BringAllBack(now_);
  EXPECT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
}

/// It stood at its gate with a profile that is gone when it comes back.
TEST_F(FlowSwapTest, WhoseProfileGoesMeanwhileComesBackWithoutOne) {
  ASSERT_NO_FATAL_FAILURE(FirstIsAway());
  protocol::Mismatch mismatch = {};
  mismatch.profile = profile_[1];
  ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
  EXPECT_EQ(Known(1).phase, Phase::kEvicted);
  Pass(kSlice);
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  sink_.host = false;
  flow_->OnMoved(1, Status(), now_);
  EXPECT_TRUE(Opened(1));
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  ExpectSoundLog();
}

}  // namespace
}  // namespace sluice::flow
