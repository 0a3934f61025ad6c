// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Less than the pool, and more again, while jobs run (Zico, section 7.3).
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::kBeyondBudget;
using scheduler::Phase;

class FlowBudgetTest : public FlowTest {
 protected:
  /// So many that keep 2 and have 12 at their peaks, each inside an iteration.
  void BeginAll(JobId count, Units limit) {
    options_.policy.lanes = count;
    Restart();
    clients_.clear();
    count_ = count;
    for (JobId job = 1; job <= count; ++job) {
      Start(job, limit, limit == 0 ? 0 : 3);
      ASSERT_TRUE(Lease(job, 2).ok());
      clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
      Pass(5 * kMs);
      // Those before it come to their troughs, and wait there while it is measured.
      for (JobId other = 1; other < job; ++other) Arrive(other);
      Fill(job);
      ASSERT_NE(Measure(job, 10), 0u) << flow_->WhyWaiting(job);
    }
    for (int round = 0; round < 3; ++round) {
      for (JobId job = 1; job <= count; ++job) Arrive(job);
    }
    for (JobId job = 1; job <= count; ++job) ASSERT_EQ(Known(job).phase, Phase::kRunning) << job;
  }
  /// At its trough, with its base.
  void Arrive(JobId job) {
    if (flow_->WhyWaiting(job) != "") return;
    GiveBack(job);
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), ++iteration_).ok());
  }
  /// To its peak.
  void Fill(JobId job) {
    if (Known(job).leased < 12) {
      ASSERT_TRUE(Lease(job, 12 - Known(job).leased).ok());
    }
  }
  void FillAll() {
    for (JobId job = 1; job <= count_; ++job) Fill(job);
  }
  /// All but its first two units.
  void GiveBack(JobId job) {
    std::vector<protocol::Extent> extents;
    Units kept = 2;
    for (const auto& run : flow_->ledger().map().Held(job, scheduler::UnitState::kLeased)) {
      const Units keep = std::min(kept, run.length);
      kept -= keep;
      if (run.length > keep) extents.push_back({run.offset + keep, run.length - keep});
    }
    if (!extents.empty()) {
      ASSERT_TRUE(Release(job, extents).ok());
    }
  }
  /// Another daemon takes over; its log begins anew.
  void DieAndRestore() {
    ByteWriter out;
    flow_->Save(&out);
    std::map<JobId, JobPages> pages;
    for (auto& [id, client] : clients_) pages[id] = client.pages();
    sink_ = RecordingSink();
    ByteReader in(out.bytes());
    Result<std::unique_ptr<Flow>> restored = Flow::Restore(options_, &sink_, &in, pages, now_);
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    flow_ = std::move(*restored);
  }
  Status Budget(Units units) { return flow_->SetBudget(units, now_); }
  void ExpectSoundLog() {
    const auto report = scheduler::Audit(sink_.records);
    for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
    EXPECT_EQ(report.over_budget_moments, 0u);
  }

  JobId count_ = 0;
  uint64_t iteration_ = 0;
};

TEST_F(FlowBudgetTest, OfAnIdleNodeAtOnce) {
  ASSERT_TRUE(Budget(25).ok());
  EXPECT_EQ(flow_->budget(), 25u);
  EXPECT_EQ(flow_->ledger().free(), 25u);
  EXPECT_EQ(flow_->CheckRegistration({0, "large", 26, 0}).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(flow_->CheckRegistration({0, "fits", 25, 0}).ok());
  // Who was given no limit is told what there is.
  Start(1);
  ASSERT_TRUE(Lease(1, 2).ok());
  EXPECT_EQ(Known(1).limit, 25u);
  ASSERT_TRUE(Lease(1, 24).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  ASSERT_TRUE(Lease(1, 23).ok());
  EXPECT_EQ(Known(1).leased, 25u);
  ExpectSoundLog();
}

TEST_F(FlowBudgetTest, FallsWhenThoseInsideHaveComeToTheirTroughs) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(3, 0));
  FillAll();
  ASSERT_TRUE(Budget(20).ok());
  EXPECT_EQ(flow_->budget(), 40u) << "they hold 36";
  EXPECT_EQ(flow_->wanted_budget(), 20u);
  Arrive(1);
  EXPECT_EQ(Known(1).phase, Phase::kParked) << "nobody begins now";
  EXPECT_NE(flow_->WhyWaiting(1).find("the budget falls to 20.0 MiB"), std::string::npos)
      << flow_->WhyWaiting(1);
  EXPECT_EQ(flow_->budget(), 40u);
  Arrive(2);
  EXPECT_EQ(flow_->budget(), 20u) << "job 3 holds 12, the others keep 2 each";
  EXPECT_EQ(flow_->WhyWaiting(1).find("the budget falls"), std::string::npos);
  Arrive(3);
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  EXPECT_EQ(flow_->budget_refusal(), "");
  ExpectSoundLog();
}

/// Another one before the first is in force.
TEST_F(FlowBudgetTest, FallsToTheLatest) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(3, 0));
  FillAll();
  for (const Units units : {24u, 20u, 30u, 22u}) {
    ASSERT_TRUE(Budget(units).ok());
    EXPECT_EQ(flow_->budget(), 40u);
    EXPECT_EQ(flow_->wanted_budget(), units);
    EXPECT_EQ(flow_->ledger().Find(kBeyondBudget)->limit, 40 - units);
  }
  Arrive(1);
  Arrive(2);
  EXPECT_EQ(flow_->budget(), 22u);
  ASSERT_TRUE(Budget(40).ok());
  ExpectSoundLog();
}

TEST_F(FlowBudgetTest, GoesOnInLessAndInMoreAgain) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(2, 30));
  const Status promised = Budget(20);
  EXPECT_EQ(promised.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(promised.message().find("was promised 30.0 MiB"), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(BeginAll(2, 15));
  ASSERT_TRUE(Budget(18).ok());
  size_t together = 0;
  for (int round = 0; round < 12; ++round) {
    if (round == 2) {
      EXPECT_EQ(flow_->budget(), 18u);
    }
    if (round == 6) {
      EXPECT_EQ(together, 0u) << "there is room for one";
      ASSERT_TRUE(Budget(40).ok());
      EXPECT_EQ(flow_->budget(), 40u) << "more is there at once";
      EXPECT_EQ(flow_->ledger().Find(kBeyondBudget), nullptr);
    }
    for (const JobId job : {JobId{1}, JobId{2}}) {
      if (Known(job).phase == Phase::kRunning && round >= 2) Fill(job);
      EXPECT_LE(flow_->ledger().held(1) + flow_->ledger().held(2), flow_->budget());
    }
    together += round >= 2 && Known(1).leased + Known(2).leased > 18;
    Arrive(round % 2 == 0 ? 1 : 2);
    Pass(kMs);
  }
  EXPECT_GT(together, 0u);
  EXPECT_TRUE(sink_.denials.empty());
  ExpectSoundLog();
}

TEST_F(FlowBudgetTest, WhatAJobNeedsIsNotTakenFromIt) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(2, 0));
  const Status small = Budget(13);  // its plan has a margin
  EXPECT_EQ(small.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(small.message().find("needs 14.0 MiB and the others keep 2.0 MiB"), std::string::npos)
      << small.message();
  EXPECT_NE(small.message().find("allowed: from 16.0 MiB"), std::string::npos) << small.message();
  EXPECT_EQ(flow_->wanted_budget(), 40u);
  EXPECT_EQ(Budget(15).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Budget(16).ok());
  for (const Units none : {0u, 41u}) {
    EXPECT_EQ(Budget(none).code(), StatusCode::kInvalidArgument) << none;
  }
  EXPECT_NE(Budget(0).message().find("allowed: 1.0 MiB to 40.0 MiB (the pool)"), std::string::npos);
}

/// What a job needs that is being measured nobody knows.
TEST_F(FlowBudgetTest, WaitsForAMeasurementAndIsGivenUpIfThatSaysSo) {
  Start(1);
  ASSERT_TRUE(Lease(1, 2).ok());
  clients_[1].Push(protocol::OpKind::kAlloc, 2 * kUnit);
  ASSERT_EQ(Known(1).phase, Phase::kUnprofiled);
  ASSERT_TRUE(Budget(10).ok());
  EXPECT_EQ(flow_->budget(), 40u);
  ASSERT_TRUE(Lease(1, 20).ok()) << "it is measured as if there were no budget";
  ASSERT_EQ(Known(1).leased, 22u);
  Pass(5 * kMs);
  EXPECT_EQ(flow_->wanted_budget(), 40u);
  EXPECT_NE(flow_->budget_refusal().find("job 1 'job1' needs 22.0 MiB"), std::string::npos)
      << flow_->budget_refusal();
  ExpectSoundLog();
}

/// A program without iterations keeps what it has, and no more is asked of it.
TEST_F(FlowBudgetTest, DoesNotWaitForEverForAMeasurement) {
  Start(1);
  ASSERT_TRUE(Lease(1, 5).ok());
  ASSERT_TRUE(Budget(10).ok());
  Pass(2 * options_.lease_wait_ns);
  EXPECT_EQ(flow_->budget(), 40u) << "it is still waited for";
  EXPECT_EQ(flow_->wanted_budget(), 10u);
  Pass(options_.patience.silent_ns);
  EXPECT_TRUE(Known(1).settled);
  Pass(5 * kMs);
  EXPECT_EQ(flow_->budget(), 10u);
  ASSERT_TRUE(Lease(1, 5).ok());
  EXPECT_EQ(Known(1).leased, 10u);
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_EQ(sink_.denials[1].size(), 1u);
  ExpectSoundLog();
}

/// Alone, a job may come to its trough with all that it has: nobody wants it.
TEST_F(FlowBudgetTest, OfALoneJobInItsIteration) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(1, 0));
  Fill(1);
  ASSERT_TRUE(Budget(20).ok());
  EXPECT_EQ(flow_->budget(), 20u) << "it holds 12, and claims no more";
  ASSERT_TRUE(Gate(1, 0, clients_[1].profile(), ++iteration_, /*drained=*/false).ok());
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  ASSERT_TRUE(Budget(15).ok());
  Arrive(1);
  EXPECT_EQ(flow_->budget(), 15u);
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  ExpectSoundLog();
}

/// Who is stopped in the middle of its iteration does not keep the others from beginning for ever.
TEST_F(FlowBudgetTest, IsGivenUpWhenSomebodyStandsStill) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(3, 0));
  FillAll();
  ASSERT_TRUE(Budget(20).ok());
  Arrive(1);
  Pass(options_.lease_wait_ns / 2);
  EXPECT_EQ(Known(1).phase, Phase::kParked);
  Pass(options_.lease_wait_ns / 2);
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  EXPECT_NE(flow_->budget_refusal().find("job 2 'job2' holds 12.0 MiB"), std::string::npos)
      << flow_->budget_refusal();
  EXPECT_EQ(flow_->wanted_budget(), 40u);
  EXPECT_EQ(flow_->ledger().Find(kBeyondBudget), nullptr);
  ExpectSoundLog();
}

TEST_F(FlowBudgetTest, OutlivesItsDaemon) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(2, 0));
  Arrive(1);
  ASSERT_TRUE(Budget(26).ok());
  ASSERT_EQ(flow_->budget(), 26u);
  ASSERT_NO_FATAL_FAILURE(DieAndRestore());
  EXPECT_EQ(flow_->budget(), 26u);
  EXPECT_EQ(flow_->wanted_budget(), 26u);
  EXPECT_EQ(sink_.Count(EventKind::kDeath, kBeyondBudget), 0u);
  flow_->Thaw(now_);
  EXPECT_EQ(flow_->budget(), 26u);
  ExpectSoundLog();
}

/// Promised, and not in force yet.
TEST_F(FlowBudgetTest, FallsOnUnderTheNextDaemon) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(3, 0));
  FillAll();
  ASSERT_TRUE(Budget(20).ok());
  ASSERT_NO_FATAL_FAILURE(DieAndRestore());
  flow_->Thaw(now_);
  EXPECT_EQ(flow_->budget(), 40u);
  EXPECT_EQ(flow_->wanted_budget(), 20u);
  Arrive(1);
  Arrive(2);
  EXPECT_EQ(flow_->budget(), 20u);
  ExpectSoundLog();
}

/// More is there at once, whoever is being measured meanwhile.
TEST_F(FlowBudgetTest, RisesBesideAMeasurement) {
  ASSERT_TRUE(Budget(20).ok());
  Start(1);
  ASSERT_TRUE(Lease(1, 2).ok());
  ASSERT_EQ(Known(1).phase, Phase::kUnprofiled);
  ASSERT_TRUE(Budget(30).ok());
  EXPECT_EQ(flow_->budget(), 30u);
  EXPECT_EQ(Known(1).limit, 30u);
  ExpectSoundLog();
}

/// A node that reserves limits reserves those of the budget.
TEST_F(FlowBudgetTest, HoldsUnderSpatialToo) {
  options_.policy.policy = "spatial";
  Restart();
  Start(1, 12, 0);
  ASSERT_TRUE(Lease(1, 2).ok());
  Pass(5 * kMs);
  EXPECT_NE(Budget(11).message().find("job 1 'job1' was promised 12.0 MiB"), std::string::npos);
  ASSERT_TRUE(Budget(20).ok());
  EXPECT_EQ(flow_->budget(), 20u);
  EXPECT_EQ(flow_->CheckRegistration({0, "second", 9, 0}).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(flow_->CheckRegistration({0, "second", 8, 0}).ok());
  ExpectSoundLog();
}

}  // namespace
}  // namespace sluice::flow
