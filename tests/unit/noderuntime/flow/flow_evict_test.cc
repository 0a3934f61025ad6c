// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A job that left its claim, on its way to host memory and back.
#include <atomic>
#include <thread>

#include "tests/unit/noderuntime/flow/flow_moves.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::UnitState;

class FlowEvictTest : public FlowMovesTest {
 protected:
  /// Both are past their gates; job 1 has its whole claim, and job 2 waits for the rest of its own.
  void BothPastTheirGates() {
    Ready(1);
    Start(2, 30, kBase);
    ToGateZero(1);
    Ready(2);
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
    ASSERT_TRUE(Lease(1, Known(1).terms.claim - Known(1).leased).ok());
    ASSERT_EQ(Known(1).leased, Known(1).terms.claim);
    ASSERT_EQ(Known(2).phase, Phase::kRunning);
    ASSERT_TRUE(Lease(2, flow_->ledger().free() - 5).ok());
    const Units free = flow_->ledger().free();
    ASSERT_EQ(free, 5u);
    ASSERT_LT(free, Known(2).terms.claim - Known(2).leased) << "job 2 has to wait";
    ASSERT_TRUE(Lease(2, Known(2).terms.claim - Known(2).leased).ok());
    answers_[2] = sink_.grants[2].size();
  }
  /// More than its claim, and than there is.
  void Deviate() {
    answers_[1] = sink_.grants[1].size();
    ASSERT_TRUE(Lease(1, 30 - Known(1).leased).ok());
    asked_ = seq_;
  }
  Status Quiet(protocol::QuietReason reason = protocol::QuietReason::kQuiet) {
    protocol::Quiet frame = {};
    frame.header.seq = asked_;
    frame.reason = static_cast<uint32_t>(reason);
    return flow_->OnQuiet(1, frame, now_);
  }
  using Reasons = std::vector<std::string>;
  /// Of its latest request, in their order.
  Reasons Waits(JobId job) {
    Reasons reasons;
    for (const auto& record : sink_.records) {
      if (record.job != job) continue;
      if (record.event == EventKind::kGrant) reasons.clear();
      if (record.event == EventKind::kWait) reasons.push_back(record.reason);
    }
    return reasons;
  }
  bool Answered(JobId job) { return sink_.grants[job].size() > answers_[job]; }

  std::map<JobId, size_t> answers_;
  uint32_t asked_ = 0;
};

TEST_F(FlowEvictTest, GoesAndComesBack) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  const Extents before = Leased(1);
  Deviate();
  ASSERT_EQ(sink_.quiesced[1], asked_);
  EXPECT_FALSE(Answered(1));
  EXPECT_TRUE(sink_.moved_out.empty()) << "it still computes";
  ASSERT_TRUE(Quiet().ok());
  EXPECT_EQ(Waits(1), (Reasons{"memory"}));
  EXPECT_EQ(sink_.moved_out[1], scheduler::Subtract(before, base_[1]));
  EXPECT_FALSE(Answered(2)) << "nothing may be lent before it is copied";
  flow_->OnMoved(1, Status(), now_);
  EXPECT_EQ(Known(1).phase, Phase::kEvicted);
  EXPECT_TRUE(Answered(2));
  EXPECT_FALSE(Answered(1));
  EXPECT_EQ(Waits(1), (Reasons{"memory", "host-memory"})) << "it waits for something else now";
  EXPECT_EQ(ReasonName(flow_->WaitsBecause(1)), "host-memory");
  Pass(2 * kS);
  ASSERT_FALSE(sink_.lines.empty());
  EXPECT_EQ(sink_.lines.back().about, About::kWait);
  EXPECT_EQ(sink_.lines.back().reason, "host-memory");
  ToGateZero(2);
  EXPECT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  EXPECT_EQ(Leased(1), before);
  for (const auto& extent : before) EXPECT_EQ(sink_.holders[extent.offset], 1u);
  EXPECT_FALSE(Answered(1)) << "it is not there yet";
  Pass(60 * kS);
  EXPECT_FALSE(Answered(1)) << "however long that takes";
  EXPECT_EQ(Waits(1).size(), 2u) << "each reason of a wait is one";
  EXPECT_TRUE(sink_.denials[1].empty());
  flow_->OnMoved(1, Status(), now_);
  ASSERT_TRUE(Answered(1));
  EXPECT_EQ(Known(1).leased, 30u);
  EXPECT_EQ(flow_->Find(1)->evictions, 1u);
  EXPECT_EQ(sink_.Count(EventKind::kEvict, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kBringBack, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kCopyOut, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kCopyBack, 1), 1u);
  ToGateZero(1);
  ExpectSoundLog();
}

/// Nobody begins while the budget falls; whoever is away is in the middle of its iteration, and the
/// budget is in force when it has come to its end.
TEST_F(FlowEvictTest, ComesBackWhileTheBudgetFalls) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(), now_);
  ASSERT_EQ(Known(1).phase, Phase::kEvicted);
  ASSERT_TRUE(flow_->SetBudget(36, now_).ok());
  EXPECT_EQ(flow_->budget(), 40u);
  ToGateZero(2);
  Pass(20 * kMs);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  ASSERT_TRUE(Answered(1));
  ToGateZero(1);
  Pass(20 * kMs);
  EXPECT_EQ(flow_->budget(), 36u) << flow_->budget_refusal();
  ExpectSoundLog();
}

/// A job at its trough keeps something in the place of whoever is away. It goes on, until it does
/// not; held back, the two would wait for each other until the budget is given up.
TEST_F(FlowEvictTest, WhoIsInItsPlaceGoesOnWhileTheBudgetFalls) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(), now_);
  const Extents meanwhile = scheduler::Intersect(Leased(2), Known(1).away);
  ASSERT_FALSE(meanwhile.empty());
  ASSERT_TRUE(flow_->SetBudget(36, now_).ok());
  const Extents base = base_[2];
  base_[2] = {{base.front().offset, 1}, {meanwhile.front().offset, 1}};
  const size_t answers = sink_.grants[2].size();
  ToGateZero(2);
  EXPECT_TRUE(sink_.moved_back.empty());
  ASSERT_EQ(sink_.grants[2].size(), answers + 1) << "its gate";
  base_[2] = base;
  ASSERT_TRUE(Lease(2, 1).ok());
  base_[2] = {{base.front().offset, 1}};
  ToGateZero(2);
  EXPECT_EQ(sink_.grants[2].size(), answers + 2) << "its next gate stays shut";
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  ToGateZero(1);
  Pass(20 * kMs);
  EXPECT_EQ(flow_->budget(), 36u) << flow_->budget_refusal();
  ExpectSoundLog();
}

TEST_F(FlowEvictTest, WhoCannotBeMadeQuietIsTold) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet(protocol::QuietReason::kCapturing).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(sink_.denials[1].front().first, protocol::DenyCode::kExhausted);
  ASSERT_FALSE(sink_.notices[1].empty());
  EXPECT_NE(sink_.notices[1].back().find("captures a graph"), std::string::npos);
  EXPECT_TRUE(sink_.moved_out.empty());
  // The next time is another time.
  Deviate();
  EXPECT_EQ(sink_.quiesced[1], asked_);
}

TEST_F(FlowEvictTest, WhoNeverSaysSoIsToldAfterAWhile) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  Pass(14 * kS);
  EXPECT_TRUE(sink_.denials[1].empty());
  Pass(2 * kS);
  EXPECT_EQ(sink_.denials[1].size(), 1u) << "its neighbour waits for it";
  EXPECT_TRUE(Quiet().ok()) << "it had not read that it was told";
  EXPECT_FALSE(Quiet().ok()) << "but once";
}

/// Another thread of it may have gone on to ask for memory outside the pool, for which its limit
/// has no room beside what it waits for: it is told when it is back.
TEST_F(FlowEvictTest, WhoGetsMoreElsewhereMeanwhileIsToldWhenItIsBack) {
  options_.outside_bytes = 40 * kUnit;
  sink_ = RecordingSink();
  sink_.host = true;
  flow_ = std::make_unique<Flow>(options_, &sink_);
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  answers_[1] = sink_.grants[1].size();
  ASSERT_TRUE(Lease(1, 29 - Known(1).leased).ok());
  asked_ = seq_;
  ASSERT_TRUE(Quiet().ok());
  ASSERT_TRUE(Charge(1, protocol::Family::kArray, 2 * kUnit).ok());
  ToGateZero(2);
  EXPECT_TRUE(sink_.denials[1].empty());
  flow_->OnMoved(1, Status(), now_);
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(sink_.denials[1].front().first, protocol::DenyCode::kOverLimit);
  ExpectSoundLog();
}

TEST_F(FlowEvictTest, ACopyOutThatFailsCostsNothingButTheAnswer) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  const Extents before = Leased(1);
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(StatusCode::kInternal, "the driver says no"), now_);
  EXPECT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(Leased(1), before);
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  ToGateZero(1);
  ExpectSoundLog();
}

TEST_F(FlowEvictTest, ACopyBackThatFailsEndsTheSession) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(), now_);
  ToGateZero(2);
  flow_->OnMoved(1, Status(StatusCode::kInternal, "the driver says no"), now_);
  EXPECT_NE(sink_.ended[1].find("the driver says no"), std::string::npos);
  EXPECT_FALSE(Answered(1));
}

/// Its word that its GPU is done is believed as far as its marks say so.
TEST_F(FlowEvictTest, WhoSaysQuietBeforeItsMarksAreReachedBreaksTheRules) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  const Extents leaves = scheduler::Subtract(Leased(1), base_[1]);
  const scheduler::Extent last = {leaves.back().end() - 1, 1};
  ASSERT_TRUE(Release(1, {{last.offset, 1}}, {{0, 0, 1}}).ok()) << "it was only asked";
  const Status early = Quiet();
  EXPECT_FALSE(early.ok());
  EXPECT_NE(early.message().find("marks of its releases"), std::string::npos) << early.message();
  EXPECT_TRUE(sink_.moved_out.empty()) << "the GPU may still write there";
  clients_[1].mark->mark[0] = 1;  // nobody has looked yet
  ASSERT_TRUE(Quiet().ok());
  EXPECT_EQ(sink_.moved_out[1], scheduler::Subtract(leaves, {last}));
}

TEST_F(FlowEvictTest, WhoSaysQuietUnaskedBreaksTheRules) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  EXPECT_FALSE(Quiet().ok());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  EXPECT_FALSE(Quiet().ok()) << "once is enough";
}

/// From its word on until its memory is back: what it gave back would be lent to others under the
/// copy.
TEST_F(FlowEvictTest, WhoGivesBackWhatIsMovedBreaksTheRules) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  const Extents had = Leased(1);
  ASSERT_GT(had.size(), 1u) << "of its base and of what it has beside it";
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  ExpectNothingIsTakenBack(1, had);
  flow_->OnMoved(1, Status(), now_);
  ASSERT_EQ(Known(1).phase, Phase::kEvicted);
  EXPECT_TRUE(Answered(2));
  ExpectNothingIsTakenBack(1, had);
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  ExpectNothingIsTakenBack(1, had);
  EXPECT_EQ(Leased(1), had);
  flow_->OnMoved(1, Status(), now_);
  ASSERT_TRUE(Answered(1));
  ToGateZero(1);
  EXPECT_EQ(Known(1).phase, Phase::kRunning) << "and gives back as before";
  ExpectSoundLog();
}

/// While it is only asked, frames of it may be on their way.
TEST_F(FlowEvictTest, WhoIsOnlyAskedMayGiveBack) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  const Units last = Leased(1).back().end() - 1;
  ASSERT_TRUE(Release(1, {{last, 1}}, {{3, 0, 9}}).ok());
  clients_[1].mark->mark[3].store(9);
  ASSERT_TRUE(Quiet().ok());
  EXPECT_EQ(sink_.moved_out[1], scheduler::Subtract(Leased(1), base_[1]));
  EXPECT_EQ(Known(1).unfenced, 0u);
  flow_->OnMoved(1, Status(), now_);
  EXPECT_EQ(Known(1).phase, Phase::kEvicted);
  ExpectSoundLog();
}

TEST_F(FlowEvictTest, WhoseGpuHasNotPassedItsMarksDoesNotStandStill) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  const Units last = Leased(1).back().end() - 1;
  ASSERT_TRUE(Release(1, {{last, 1}}, {{3, 0, 9}}).ok());
  clients_[1].mark->mark[3].store(8);
  EXPECT_NE(Quiet().message().find("marks of its releases are not reached"), std::string::npos);
  EXPECT_TRUE(sink_.moved_out.empty());
}

/// Another thread of it may have memory outside the pool meanwhile.
TEST_F(FlowEvictTest, ChargesGoOnMeanwhile) {
  options_.outside_bytes = 40 * kUnit;
  sink_ = RecordingSink();
  sink_.host = true;
  flow_ = std::make_unique<Flow>(options_, &sink_);
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  const auto account = [this] {
    EXPECT_TRUE(Charge(1, protocol::Family::kArray, kUnit).ok());
    EXPECT_TRUE(Uncharge(1, protocol::Family::kArray, kUnit).ok());
    EXPECT_TRUE(sink_.denials[1].empty());
  };
  answers_[1] = sink_.grants[1].size();
  ASSERT_TRUE(Lease(1, 28 - Known(1).leased).ok());
  asked_ = seq_;
  account();
  ASSERT_TRUE(Quiet().ok());
  account();
  flow_->OnMoved(1, Status(), now_);
  account();
  ToGateZero(2);
  ASSERT_EQ(sink_.moved_back, (std::vector<JobId>{1}));
  account();
  flow_->OnMoved(1, Status(), now_);
  EXPECT_TRUE(Answered(1));
  ExpectSoundLog();
}

/// All that it had written before it stood still.
TEST_F(FlowEvictTest, AWholeRingOfRecordsIsRead) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  for (uint32_t i = 0; i < protocol::kRingRecords; ++i) {
    clients_[1].Push(protocol::OpKind::kCopy, 1);
  }
  const uint64_t copies = flow_->Find(1)->copies;
  ASSERT_TRUE(Quiet().ok());
  EXPECT_EQ(flow_->Find(1)->copies - copies, protocol::kRingRecords);
  EXPECT_EQ(clients_[1].client->lost.load(), 0u);
}

/// Nobody else has a turn while they are read.
TEST_F(FlowEvictTest, WhoNeverStopsWritingRecordsDoesNotStandStill) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  FakeClient& own = clients_[1];
  for (auto& place : own.client->ring) {
    protocol::StoreRecord(place, {static_cast<uint8_t>(protocol::OpKind::kCopy), 0, 0, 0, 1});
  }
  std::atomic<bool> over = false;
  const auto fill = [&own] {
    own.client->head.store(own.daemon->tail.load() + protocol::kRingRecords);
  };
  std::thread writer([&] {
    while (!over.load()) fill();
  });
  Status quiet;
  // A writer that has no turn while a ring is read looks like one that has stopped.
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    Deviate();
    fill();
    const uint64_t copies = flow_->Find(1)->copies;
    quiet = Quiet();
    // And a few behind it, which could be frees.
    EXPECT_LE(flow_->Find(1)->copies - copies, protocol::kRingRecords + 4096);
    if (!quiet.ok()) break;
    sink_.in_host.clear();
    flow_->OnMoved(1, Status(StatusCode::kInternal, "no"), now_);
  }
  over = true;
  writer.join();
  EXPECT_NE(quiet.message().find("records"), std::string::npos) << quiet.message();
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
}

/// A release that got through, and what else nobody has thought of.
class FlowMixedUpTest : public FlowEvictTest {
 protected:
  void Leave(bool compares = true) {
    options_.faults.release_moved = true;
    options_.faults.skip_comparison = !compares;
    sink_ = RecordingSink();
    sink_.host = true;
    flow_ = std::make_unique<Flow>(options_, &sink_);
    ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
    Deviate();
    ASSERT_TRUE(Quiet().ok());
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
  }
  std::vector<protocol::Extent> Beside() {
    std::vector<protocol::Extent> beside;
    for (const auto& extent : sink_.moved_out[1]) beside.push_back({extent.offset, extent.length});
    return beside;
  }
  /// Nothing was evicted, and nobody waits for it but its session's end.
  void ExpectEnds(const std::string& why) {
    EXPECT_EQ(sink_.dropped, (std::vector<JobId>{1}));
    EXPECT_NE(sink_.ended[1].find(why), std::string::npos) << sink_.ended[1];
    EXPECT_EQ(sink_.Count(EventKind::kEvict, 1), sink_.moved_back.size());
    EXPECT_FALSE(Answered(1));
    flow_->Die(1, now_);
    flow_->HolderGone(1, now_);
    ToGateZero(2);
    EXPECT_EQ(Known(2).phase, Phase::kRunning);
    const Status invariants = flow_->ledger().CheckInvariants();
    EXPECT_TRUE(invariants.ok()) << invariants.message();
  }
};

TEST_F(FlowMixedUpTest, WhatIsEvictedIsWhatWasCopied) {
  ASSERT_NO_FATAL_FAILURE(Leave());
  ASSERT_TRUE(Release(1, {{Beside().back().offset, 1}}).ok());
  flow_->OnMoved(1, Status(), now_);
  ExpectEnds("of it were copied");
}

TEST_F(FlowMixedUpTest, WhatIsEvictedIsNoUnitThatTheGpuStillWorksOn) {
  ASSERT_NO_FATAL_FAILURE(Leave());
  ASSERT_TRUE(Release(1, {{base_[1].front().offset, 1}}, {{3, 0, 9}}).ok());
  flow_->OnMoved(1, Status(), now_);
  ExpectEnds("still computes");
}

TEST_F(FlowMixedUpTest, WhoHasNothingLeftIsNotEvicted) {
  ASSERT_NO_FATAL_FAILURE(Leave(false));
  ASSERT_TRUE(Release(1, Beside()).ok());
  flow_->OnMoved(1, Status(), now_);
  ExpectEnds("has nothing beside its base");
}

TEST_F(FlowMixedUpTest, WhatIsCopiedBackIsWhatIsItsAgain) {
  ASSERT_NO_FATAL_FAILURE(Leave());
  flow_->OnMoved(1, Status(), now_);
  ASSERT_EQ(Known(1).phase, Phase::kEvicted);
  ++sink_.moved_out[1].back().length;
  ToGateZero(2);
  EXPECT_TRUE(sink_.moved_back.empty()) << "not a byte is written";
  sink_.moved_back.push_back(1);  // the one eviction that there was
  ExpectEnds("of it were copied");
}

TEST_F(FlowEvictTest, WhoDiesMeanwhileIsForgotten) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(), now_);
  EXPECT_TRUE(flow_->Die(1, now_)) << "its base is waited for";
  EXPECT_EQ(sink_.dropped, (std::vector<JobId>{1}));
  flow_->OnMoved(1, Status(), now_);
  flow_->HolderGone(1, now_);
  ToGateZero(2);
  EXPECT_EQ(Known(2).phase, Phase::kRunning);
  ExpectSoundLog();
}

TEST_F(FlowEvictTest, WithoutHostMemoryItIsToldAtOnce) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  sink_.host = false;
  Deviate();
  EXPECT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_TRUE(sink_.quiesced.empty());
}

TEST_F(FlowEvictTest, AnotherDaemonHasNothingOfIt) {
  ASSERT_NO_FATAL_FAILURE(BothPastTheirGates());
  Deviate();
  ASSERT_TRUE(Quiet().ok());
  flow_->OnMoved(1, Status(), now_);
  ByteWriter kept;
  flow_->Save(&kept);
  const std::vector<std::byte> bytes(kept.bytes().begin(), kept.bytes().end());
  ByteReader in(bytes);
  const std::map<JobId, JobPages> pages = {{1, clients_[1].pages()}, {2, clients_[2].pages()}};
  RecordingSink next;
  auto restored = Flow::Restore(options_, &next, &in, pages, now_);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ((*restored)->Find(1), nullptr);
  EXPECT_EQ((*restored)->ledger().Find(1)->phase, Phase::kDying);
  EXPECT_FALSE((*restored)->Resume(1, {}, now_).ok());
  EXPECT_NE((*restored)->Find(2), nullptr);
}

}  // namespace
}  // namespace sluice::flow
