// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What `auto` puts in force beside a policy: a soft budget below the pool, and another credit.
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::Claims;
using scheduler::EventKind;
using scheduler::Phase;

class FlowSoftBudgetTest : public FlowTest {
 protected:
  /// Two that keep 2 and have 12 at their peaks; both have a profile.
  void BeginTwo() {
    for (const JobId job : {JobId{1}, JobId{2}}) {
      Start(job, 20, 2);
      ASSERT_TRUE(Lease(job, 2).ok());
      clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
      ASSERT_NE(Measure(job, 10), 0u);
      ASSERT_TRUE(Gate(job, 0, clients_[job].profile()).ok());
    }
    Arrive(1);
    Arrive(2);
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
    ASSERT_EQ(Known(2).phase, Phase::kRunning);
  }
  /// At its trough, with its base.
  void Arrive(JobId job) {
    std::vector<protocol::Extent> back;
    Units kept = 2;
    for (const auto& run : flow_->ledger().map().Held(job, scheduler::UnitState::kLeased)) {
      const Units keep = std::min(kept, run.length);
      kept -= keep;
      if (run.length > keep) back.push_back({run.offset + keep, run.length - keep});
    }
    if (!back.empty()) {
      ASSERT_TRUE(Release(job, back).ok());
    }
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), ++iteration_).ok());
  }
  /// Job 1 is at its peak, and job 2 wants to begin.
  void PutInForceBetween() {
    ASSERT_TRUE(Lease(1, 12 - Known(1).leased).ok());
    Arrive(2);
    ASSERT_EQ(Known(2).phase, Phase::kRunning) << "without one";
    PutInForce(flow_->LeastSoftBudget());
    Arrive(2);
    ASSERT_EQ(Known(2).phase, Phase::kParked) << flow_->LeastSoftBudget();
  }
  Units Soft() const { return flow_->way().soft_budget; }
  void PutInForce(Units soft, uint32_t credit_parts = 8) {
    ASSERT_TRUE(flow_->SetWay({"flow", 2, Claims::kContract, soft, credit_parts}, now_).ok());
  }
  std::string LastWhy() const {
    std::string why;
    for (const auto& record : sink_.records) {
      if (record.event == EventKind::kPolicy) why = record.text;
    }
    return why;
  }
  uint64_t CreditOf(JobId job) {
    auto image = std::make_unique<protocol::ProfileImage>();
    EXPECT_TRUE(protocol::ReadProfile(*clients_[job].daemon, image.get()));
    return image->credit_ns;
  }

  uint64_t iteration_ = 0;
};

TEST_F(FlowSoftBudgetTest, HoldsIterationsBackAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  EXPECT_GE(flow_->LeastSoftBudget(), 14u) << "a peak of 12 beside a base of 2";
  EXPECT_LT(flow_->LeastSoftBudget(), 24u);
  ASSERT_NO_FATAL_FAILURE(PutInForceBetween());
  EXPECT_EQ(flow_->budget(), 40u) << "nothing was taken from anybody";
  EXPECT_EQ(Known(1).limit, 20u);
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_EQ(Known(1).leased, 13u) << "who is inside is not asked";
  EXPECT_NE(flow_->WhyWaiting(2).find("soft budget"), std::string::npos) << flow_->WhyWaiting(2);
  PutInForce(0);
  EXPECT_EQ(Known(2).phase, Phase::kRunning);
  EXPECT_EQ(sink_.records.back().job, 2u);
}

TEST_F(FlowSoftBudgetTest, IsGivenUpAtOnceWhenAJobComesOrGoes) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  ASSERT_NO_FATAL_FAILURE(PutInForceBetween());
  Start(3, 8);
  EXPECT_EQ(Soft(), 0u);
  EXPECT_EQ(LastWhy(), "job 3 begins");
  PutInForce(20);
  flow_->Die(3, now_);
  EXPECT_EQ(Soft(), 0u);
  EXPECT_EQ(LastWhy(), "job 3 has ended");
  EXPECT_EQ(flow_->soft_budgets_outgrown(), 0u);
}

TEST_F(FlowSoftBudgetTest, IsGivenUpAtOnceWithAProfile) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  PutInForce(20);
  protocol::Mismatch mismatch = {};
  mismatch.profile = clients_[2].profile();
  ASSERT_TRUE(flow_->OnMismatch(2, mismatch, now_).ok());
  EXPECT_EQ(Soft(), 0u);
}

/// Who asks for more than it claimed gets it, where there is some, and those who waited go on.
TEST_F(FlowSoftBudgetTest, IsGivenUpAtOnceWhenAClaimNeedsMore) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  ASSERT_NO_FATAL_FAILURE(PutInForceBetween());
  const Units claim = Known(1).terms.claim;
  ASSERT_TRUE(Lease(1, claim - Known(1).leased).ok());
  EXPECT_NE(Soft(), 0u);
  EXPECT_EQ(Known(2).phase, Phase::kParked);
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_EQ(Known(1).leased, claim + 1);
  EXPECT_EQ(Soft(), 0u);
  EXPECT_EQ(flow_->soft_budgets_outgrown(), 1u);
  EXPECT_EQ(LastWhy(), "job 1 needs more than it claimed");
  EXPECT_EQ(Known(2).phase, Phase::kRunning);
}

TEST_F(FlowSoftBudgetTest, TooSmallOneIsGivenUp) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  PutInForce(flow_->LeastSoftBudget() - 1);
  EXPECT_EQ(Soft(), 0u);
  EXPECT_EQ(flow_->soft_budgets_outgrown(), 1u);
  EXPECT_EQ(LastWhy().find("the jobs need "), 0u) << LastWhy();
}

TEST_F(FlowSoftBudgetTest, GoesWhenTheOperatorChangesTheBudgetOrThePolicy) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  PutInForce(20, 32);
  ASSERT_TRUE(flow_->SetBudget(35, now_).ok());
  EXPECT_EQ(Soft(), 0u);
  PutInForce(20, 32);
  ASSERT_TRUE(flow_->SetWay({"nodegroup", 2, Claims::kContract}, now_).ok());
  EXPECT_EQ(flow_->way(), (Way{"nodegroup", 2, Claims::kContract, 0, 8}));
}

/// The next daemon begins without, and its `auto` measures anew.
TEST_F(FlowSoftBudgetTest, EndsWithItsDaemon) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  PutInForce(20);
  ByteWriter out;
  flow_->Save(&out);
  std::map<JobId, JobPages> pages;
  for (auto& [id, client] : clients_) pages[id] = client.pages();
  ByteReader in(out.bytes());
  sink_ = RecordingSink();
  Result<std::unique_ptr<Flow>> restored = Flow::Restore(options_, &sink_, &in, pages, now_);
  ASSERT_TRUE(restored.ok());
  flow_ = std::move(*restored);
  flow_->Thaw(now_);
  EXPECT_EQ(Soft(), 0u);
}

TEST_F(FlowSoftBudgetTest, CreditReachesTheClientsInThePlaceOfTheirProfiles) {
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  const uint32_t profile = clients_[1].profile();
  const uint64_t usual = CreditOf(1);
  EXPECT_EQ(usual, 20 * 50'000u / 8);
  PutInForce(0, 32);
  EXPECT_EQ(CreditOf(1), 20 * 50'000u / 32);
  EXPECT_EQ(CreditOf(2), 20 * 50'000u / 32);
  EXPECT_EQ(clients_[1].profile(), profile) << "the client goes on where it is";
  EXPECT_EQ(Known(1).phase, Phase::kRunning);
  PutInForce(0);
  EXPECT_EQ(CreditOf(1), usual);
}

/// Whoever said how far a CPU may run ahead has said it for all.
TEST_F(FlowSoftBudgetTest, AGivenCreditStays) {
  options_.credit_ns = 77'000;
  Restart();
  ASSERT_NO_FATAL_FAILURE(BeginTwo());
  PutInForce(0, 32);
  EXPECT_EQ(CreditOf(1), 77'000u);
}

}  // namespace
}  // namespace sluice::flow
