// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Nobody waits at a gate, because everybody's limit is reserved.
#include "noderuntime/flow/flow.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::Claims;
using scheduler::EventKind;
using scheduler::Phase;

class FlowSpatialTest : public FlowTest {
 protected:
  void BeginSpatial() {
    options_.policy.policy = "spatial";
    Restart();
  }
  /// With its base leased and a cycle that repeats itself.
  void Begin(JobId job, Units limit, Units request) {
    Start(job, limit, request);
    ASSERT_TRUE(Lease(job, 2).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    Pass(5 * kMs);
  }
  Status Switch(const std::string& policy) {
    return flow_->SetWay({policy, 2, Claims::kContract}, now_);
  }
  void ExpectSoundLog() {
    const auto report = scheduler::Audit(sink_.records);
    EXPECT_TRUE(report.violations.empty()) << report.violations.front().text;
  }
};

TEST_F(FlowSpatialTest, NobodyIsMeasuredAndNobodyWaits) {
  BeginSpatial();
  EXPECT_EQ(flow_->policy_name(), "spatial");
  for (const JobId job : {JobId{1}, JobId{2}}) {
    ASSERT_NO_FATAL_FAILURE(Begin(job, 18, 0));
    EXPECT_TRUE(Known(job).settled);
    EXPECT_EQ(Known(job).request, 18u);
    EXPECT_EQ(Measure(job, 10), 0u) << "no gates";
  }
  // Both to the brim at once.
  for (const JobId job : {JobId{1}, JobId{2}}) {
    ASSERT_TRUE(Lease(job, 16).ok());
    EXPECT_EQ(Known(job).leased, 18u);
  }
  EXPECT_TRUE(sink_.denials.empty());
  ExpectSoundLog();
}

TEST_F(FlowSpatialTest, RefusesALimitThatDoesNotFitBesideTheOthers) {
  BeginSpatial();
  ASSERT_NO_FATAL_FAILURE(Begin(1, 30, 0));
  EXPECT_TRUE(flow_->CheckRegistration({0, "fits", 10, 0}).ok());
  const Status large = flow_->CheckRegistration({0, "large", 11, 0});
  EXPECT_EQ(large.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(large.message().find("job 1 'job1'"), std::string::npos) << large.message();
  const Status none = flow_->CheckRegistration({0, "none", 0, 0});
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(none.message().find("limit: policy spatial"), std::string::npos) << none.message();
}

/// Both were registered before either had begun.
TEST_F(FlowSpatialTest, TwoAtOnceAreNotPromisedTheSame) {
  BeginSpatial();
  Start(1, 30, 1);
  Start(2, 20, 1);
  ASSERT_TRUE(Lease(1, 2).ok());
  ASSERT_TRUE(Lease(2, 2).ok());
  Pass(5 * kMs);
  Pass(5 * kMs);
  EXPECT_TRUE(Known(1).settled);
  EXPECT_EQ(sink_.grants[1].size(), 1u);
  ASSERT_EQ(sink_.denials[2].size(), 1u);
  EXPECT_EQ(sink_.denials[2][0].first, protocol::DenyCode::kRefused);
  EXPECT_NE(sink_.denials[2][0].second.find("job 1 'job1'"), std::string::npos)
      << sink_.denials[2][0].second;
  ExpectSoundLog();
}

TEST_F(FlowSpatialTest, ComesAndGoesWhileJobsRun) {
  for (const JobId job : {JobId{1}, JobId{2}}) {
    ASSERT_NO_FATAL_FAILURE(Begin(job, 20, 3));
    ASSERT_NE(Measure(job, 10), 0u);
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), 1).ok());
  }
  ASSERT_TRUE(Switch("spatial").ok());
  for (const JobId job : {JobId{1}, JobId{2}}) {
    EXPECT_EQ(clients_[job].profile(), 0u);
    // Its next gate frame was under way.
    ASSERT_TRUE(Gate(job, 0, 1, 2).ok());
    EXPECT_TRUE(Known(job).settled);
    EXPECT_EQ(Known(job).request, 20u);
  }
  ASSERT_TRUE(Switch("flow").ok());
  EXPECT_EQ(flow_->policy_name(), "flow");
  for (const JobId job : {JobId{1}, JobId{2}}) {
    ASSERT_NE(Measure(job, 10), 0u) << "its cycle was known all the time";
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), 3).ok());
    EXPECT_EQ(Known(job).request, 3u) << "nothing more is reserved";
  }
  ExpectSoundLog();
}

/// Who has no profile yet is not waited for any more.
TEST_F(FlowSpatialTest, EndsAMeasurement) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 20, 3));
  ASSERT_EQ(Known(1).phase, Phase::kUnprofiled);
  Start(2, 20, 3);
  ASSERT_TRUE(Lease(2, 2).ok());
  ASSERT_TRUE(sink_.grants[2].empty()) << "job 1 is being measured";
  ASSERT_TRUE(Switch("spatial").ok());
  Pass(5 * kMs);
  EXPECT_EQ(sink_.grants[2].size(), 1u);
}

TEST_F(FlowSpatialTest, ChangesNothingWhereLimitsDoNotFit) {
  ASSERT_NO_FATAL_FAILURE(Begin(1, 30, 3));
  ASSERT_NE(Measure(1, 10), 0u);
  Start(2, 20, 3);
  const size_t records = sink_.records.size();
  const Status refused = Switch("spatial");
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("more than the 40.0 MiB that are lent"), std::string::npos)
      << refused.message();
  EXPECT_EQ(flow_->policy_name(), "flow");
  EXPECT_NE(clients_[1].profile(), 0u);
  EXPECT_EQ(sink_.records.size(), records);

  Restart();
  ASSERT_NO_FATAL_FAILURE(Begin(3, 0, 3));
  EXPECT_NE(Switch("spatial").message().find("job 3 'job3' has no limit"), std::string::npos);
}

}  // namespace
}  // namespace sluice::flow
