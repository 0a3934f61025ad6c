// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A daemon that dies, and one that goes on with its jobs.
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::UnitState;

class FlowRestoreTest : public FlowTest {
 protected:
  /// The daemon dies and another one begins with what it had kept.
  void Die() {
    ByteWriter out;
    flow_->Save(&out);
    std::map<JobId, JobPages> pages;
    for (auto& [id, client] : clients_) {
      if (flow_->Find(id) != nullptr) pages[id] = client.pages();
    }
    sink_ = RecordingSink();
    ByteReader in(out.bytes());
    Result<std::unique_ptr<Flow>> restored = Flow::Restore(options_, &sink_, &in, pages, now_);
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    EXPECT_TRUE(in.at_end());
    flow_ = std::move(*restored);
  }
  Status Resume(JobId job, std::vector<protocol::Extent> held,
                std::vector<protocol::Extent> released = {},
                std::vector<protocol::FenceTerm> fence = {}, uint32_t rejected = 0) {
    session::Declaration declared;
    declared.held = std::move(held);
    declared.released = std::move(released);
    declared.fence = std::move(fence);
    declared.rejected = rejected;
    return flow_->Resume(job, declared, now_);
  }
  Units Count(JobId job, UnitState state) { return flow_->ledger().map().Count(job, state); }
  /// What the next daemon logs is sound by itself.
  void ExpectSoundLog() {
    const scheduler::AuditReport report = scheduler::Audit(sink_.records);
    for (const auto& violation : report.violations) {
      ADD_FAILURE() << violation.rule << " (" << violation.record << "): " << violation.text;
    }
  }
};

TEST_F(FlowRestoreTest, TheLedgerIsTheSameAndNothingIsDecidedBeforeTheThaw) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  const scheduler::Ledger before = flow_->ledger();
  Die();
  EXPECT_EQ(flow_->ledger(), before);
  ASSERT_TRUE(Resume(1, {{0, 5}}).ok());
  ASSERT_TRUE(Lease(1, 2).ok());
  Pass(kS);
  EXPECT_TRUE(sink_.grants[1].empty());
  flow_->Thaw(now_);
  ASSERT_EQ(sink_.grants[1].size(), 1u);
  EXPECT_EQ(sink_.grants[1][0].extents, (Extents{{5, 2}}));
  EXPECT_GT(sink_.grants[1][0].epoch, 1u) << "the client has seen the first one";
  ExpectSoundLog();
}

/// A daemon that is to reserve limits takes over from one that lent: where they fit it does.
TEST_F(FlowRestoreTest, UnderSpatialLimitsAreReservedIfTheyFit) {
  for (const Units limit : {Units{18}, Units{25}}) {
    options_.policy = scheduler::Config();
    Restart();
    clients_.clear();
    for (const JobId job : {JobId{1}, JobId{2}}) {
      Start(job, limit, 2);
      ASSERT_TRUE(Lease(job, 2).ok());
      clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
      ASSERT_NE(Measure(job, 8), 0u);
      ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), 1).ok());
    }
    options_.policy.policy = "spatial";
    Die();
    for (const JobId job : {JobId{1}, JobId{2}}) {
      std::vector<protocol::Extent> held;
      for (const auto& extent : flow_->ledger().map().Held(job)) {
        held.push_back({extent.offset, extent.length});
      }
      ASSERT_TRUE(Resume(job, held).ok());
    }
    flow_->Thaw(now_);
    const bool fits = limit == 18;
    EXPECT_EQ(flow_->policy_name(), fits ? "spatial" : "flow");
    for (const JobId job : {JobId{1}, JobId{2}}) {
      EXPECT_EQ(clients_[job].profile() == 0, fits) << limit;
    }
    ExpectSoundLog();
  }
}

// The grant was made and kept, and its frame never came.
TEST_F(FlowRestoreTest, WhatTheClientNeverGotIsFree) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  ASSERT_TRUE(Lease(1, 3).ok());
  Die();
  EXPECT_EQ(flow_->ledger().held(1), 8u);
  ASSERT_TRUE(Resume(1, {{0, 5}}).ok());
  EXPECT_EQ(Count(1, UnitState::kLeased), 5u);
  flow_->Thaw(now_);
  EXPECT_EQ(flow_->ledger().free(), 35u);
  EXPECT_EQ(sink_.holders[6], scheduler::kNoJob);
  ExpectSoundLog();
}

// The client had sent the release; nobody had read it.
TEST_F(FlowRestoreTest, AnUnreadReleaseStaysHeldUntilItsFence) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  Die();
  ASSERT_TRUE(Resume(1, {{0, 2}}, {{2, 3}}, {{0, 0, 7}}).ok());
  flow_->Thaw(now_);
  EXPECT_EQ(Count(1, UnitState::kUnfenced), 3u);
  Pass(kS);
  EXPECT_EQ(flow_->ledger().free(), 35u);
  clients_[1].mark->mark[0] = 7;
  Pass(kMs);
  EXPECT_EQ(flow_->ledger().free(), 38u);
  ExpectSoundLog();
}

// The client's word decides about releases that the last daemon knew: named, they wait for its
// fence; not named, the GPU has passed them.
TEST_F(FlowRestoreTest, AKnownReleaseWaitsOnlyWhileTheClientNamesIt) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 6).ok());
  ASSERT_TRUE(Release(1, {{0, 2}}, {{0, 0, 1}}).ok());
  ASSERT_TRUE(Release(1, {{2, 2}}, {{0, 0, 2}}).ok());
  Die();
  EXPECT_EQ(Count(1, UnitState::kUnfenced), 4u);
  clients_[1].mark->mark[0] = 1;
  Pass(kMs);
  EXPECT_EQ(Count(1, UnitState::kUnfenced), 4u) << "it has not come back";
  ASSERT_TRUE(Resume(1, {{4, 2}}, {{2, 2}}, {{0, 0, 2}}).ok());
  EXPECT_EQ(Count(1, UnitState::kUnfenced), 2u);
  clients_[1].mark->mark[0] = 2;
  Pass(kMs);
  flow_->Thaw(now_);
  EXPECT_EQ(flow_->ledger().held(1), 2u);
  ExpectSoundLog();
}

TEST_F(FlowRestoreTest, DeclarationsThatCannotBeAreRefusedAndNothingIsFreed) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  ASSERT_TRUE(Release(1, {{4, 1}}, {{0, 0, 9}}).ok());
  Die();
  EXPECT_FALSE(Resume(1, {{0, 6}}).ok()) << "more than it was granted";
  EXPECT_FALSE(Resume(1, {{0, 2}, {1, 2}}).ok()) << "a unit twice";
  EXPECT_FALSE(Resume(1, {{39, 2}}).ok()) << "outside the pool";
  EXPECT_FALSE(Resume(1, {{0, 5}}).ok()) << "it gave the last one back";
  EXPECT_FALSE(Resume(1, {{0, 4}}, {{3, 1}}, {{0, 0, 9}}).ok()) << "held and released";
  EXPECT_FALSE(Resume(1, {{0, 4}}, {{10, 1}}, {{0, 0, 9}}).ok()) << "released, never held";
  EXPECT_FALSE(Resume(2, {}).ok()) << "nobody";
  EXPECT_EQ(flow_->ledger().held(1), 5u);
  EXPECT_TRUE(flow_->Die(1, now_)) << "its last holder is waited for";
  EXPECT_EQ(Known(1).quarantined, 5u);
}

/// So many contexts that what they cost is a small number again.
TEST_F(FlowRestoreTest, MoreContextsThanNumbersHoldAreRefused) {
  options_.context_bytes = kUnit;
  Restart();
  Start(1, 20, 4);
  ASSERT_TRUE(Charge(1, protocol::Family::kContext, kUnit).ok());
  Die();
  session::Declaration declared;
  uint64_t& contexts = declared.outside_bytes[static_cast<size_t>(protocol::Family::kContext)];
  for (const uint64_t wrapped : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    contexts = (~uint64_t{0} / kUnit) + wrapped;
    const Status refused = flow_->Resume(1, declared, now_);
    EXPECT_FALSE(refused.ok()) << contexts;
    EXPECT_NE(refused.message().find("more contexts"), std::string::npos) << refused.message();
  }
  EXPECT_EQ(flow_->outside().charged(1), 2 * kUnit);
  contexts = 1;
  EXPECT_TRUE(flow_->Resume(1, declared, now_).ok()) << "the one beside its session's";
  EXPECT_EQ(flow_->outside().charged(1), 2 * kUnit);
}

TEST_F(FlowRestoreTest, AJobGoesOnBehindItsProfile) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 8).ok());
  const uint32_t profile = Measure(1, 6);
  ASSERT_NE(profile, 0u);
  ASSERT_TRUE(Release(1, {{1, 7}}).ok());
  ASSERT_TRUE(Gate(1, 0, profile).ok());
  ASSERT_EQ(Known(1).phase, Phase::kRunning);
  const scheduler::GateTerms terms = Known(1).terms;
  const Extents leased = flow_->ledger().map().Held(1, UnitState::kLeased);
  Die();
  EXPECT_EQ(clients_[1].profile(), profile) << "the client follows it all the time";
  EXPECT_EQ(Known(1).terms, terms);
  std::vector<protocol::Extent> held;
  for (const scheduler::Extent& extent : leased) held.push_back({extent.offset, extent.length});
  ASSERT_TRUE(Resume(1, held).ok());
  flow_->Thaw(now_);
  ASSERT_TRUE(Gate(1, 0, profile, 1).ok());
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  EXPECT_EQ(sink_.Count(EventKind::kMismatch, 1), 0u);
  // Finding the cycle again is no news.
  for (int i = 0; i < 40; ++i) {
    clients_[1].Iterate(6, kUnit);
    Pass(5 * kMs);
  }
  EXPECT_EQ(clients_[1].profile(), profile);
  ExpectSoundLog();
}

TEST_F(FlowRestoreTest, AProfileThatTheClientHasGivenUpIsGone) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 8).ok());
  const uint32_t profile = Measure(1, 6);
  ASSERT_TRUE(Gate(1, 0, profile).ok());
  const Extents leased = flow_->ledger().map().Held(1, UnitState::kLeased);
  Die();
  std::vector<protocol::Extent> held;
  for (const scheduler::Extent& extent : leased) held.push_back({extent.offset, extent.length});
  ASSERT_TRUE(Resume(1, held, {}, {}, profile).ok());
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  EXPECT_EQ(clients_[1].profile(), 0u);
  ExpectSoundLog();
}

// The daemon died while it wrote the page: the profile in it is not whole.
TEST_F(FlowRestoreTest, ATornPageIsAJobWithoutAProfile) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 8).ok());
  const uint32_t profile = Measure(1, 6);
  ASSERT_TRUE(Gate(1, 0, profile).ok());
  clients_[1].daemon->profile_seq.fetch_add(1);
  Die();
  EXPECT_EQ(clients_[1].daemon->profile_seq.load() & 1, 0u);
  EXPECT_EQ(clients_[1].profile(), 0u);
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  ExpectSoundLog();
}

TEST_F(FlowRestoreTest, AnAccountBetweenTwoSessionsIsKept) {
  Start(1, 20, 4);
  ASSERT_TRUE(Charge(1, protocol::Family::kPhysical, 3 * kUnit).ok());
  ASSERT_TRUE(flow_->Die(1, now_, /*parted=*/true));
  Die();
  EXPECT_TRUE(flow_->Rests(1));
  flow_->Thaw(now_);
  ASSERT_TRUE(Uncharge(1, protocol::Family::kPhysical, kUnit).ok());
  Start(1, 20, 4);
  EXPECT_EQ(Known(1).outside, 2u);
  ExpectSoundLog();
}

TEST_F(FlowRestoreTest, ADeadJobsMemoryStaysInQuarantine) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  ASSERT_TRUE(flow_->Die(1, now_));
  Die();
  flow_->Thaw(now_);
  EXPECT_EQ(Known(1).quarantined, 5u);
  flow_->HolderGone(1, now_);
  EXPECT_EQ(flow_->ledger().free(), 40u);
  ExpectSoundLog();
}

// Nobody can speak for it, and somebody may still have its memory.
TEST_F(FlowRestoreTest, AJobWhosePagesAreGoneIsTakenForDead) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  ByteWriter out;
  flow_->Save(&out);
  sink_ = RecordingSink();
  ByteReader in(out.bytes());
  auto restored = Flow::Restore(options_, &sink_, &in, {}, now_);
  ASSERT_TRUE(restored.ok());
  flow_ = std::move(*restored);
  EXPECT_EQ(Known(1).phase, Phase::kDying);
  EXPECT_EQ(Known(1).quarantined, 5u);
}

TEST_F(FlowRestoreTest, ANewcomerThatWaitedGoesOnWaiting) {
  Start(1, 20, 4);
  ASSERT_TRUE(Lease(1, 5).ok());
  Start(2, 10, 2);
  ASSERT_TRUE(Lease(2, 3).ok());
  ASSERT_EQ(Known(2).phase, Phase::kWaiting);
  Die();
  ASSERT_TRUE(Resume(1, {{0, 5}}).ok());
  ASSERT_TRUE(Resume(2, {}).ok());
  ASSERT_TRUE(Lease(2, 3).ok());
  flow_->Thaw(now_);
  EXPECT_TRUE(sink_.grants[2].empty()) << "the first one is still measured";
  EXPECT_FALSE(flow_->Die(1, now_) && flow_->ledger().Find(1) == nullptr);
  flow_->HolderGone(1, now_);
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  EXPECT_EQ(TotalUnits(sink_.grants[2][0].extents), 3u);
}

TEST_F(FlowRestoreTest, AnotherPoolIsAnError) {
  ByteWriter out;
  flow_->Save(&out);
  ByteReader in(out.bytes());
  options_.pool_units = 41;
  EXPECT_FALSE(Flow::Restore(options_, &sink_, &in, {}, now_).ok());
}

}  // namespace
}  // namespace sluice::flow
