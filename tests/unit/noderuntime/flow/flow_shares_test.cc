// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What one job may have looked at in a turn, counted.
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

class FlowShares : public FlowTest {
 protected:
  /// As full as a ring can be, of launches that repeat nothing.
  void Fill(FakeClient* client) {
    while (client->client->head.load() - client->daemon->tail.load() < protocol::kRingRecords) {
      client->Push(protocol::OpKind::kLaunch, client->launches++ * 2654435761u);
    }
  }
  Extents Held(JobId job) { return flow_->ledger().map().Held(job, scheduler::UnitState::kLeased); }
  uint64_t Read(JobId job) { return clients_[job].daemon->tail.load(); }
};

TEST_F(FlowShares, ARingThatIsNeverEmptyIsReadByItsShare) {
  options_.claims = scheduler::Claims::kSteps;  // each request and release reads the ring
  Restart();
  Start(1, 20);
  ASSERT_TRUE(Lease(1, 4).ok());
  FakeClient& client = clients_[1];
  // Many turns in no time at all, and all that makes the flow read.
  for (int turn = 0; turn < 16; ++turn) {
    Fill(&client);
    flow_->PollFences(now_);
    flow_->Tick(now_);
    for (int frame = 0; frame < 4; ++frame) {
      const scheduler::Extent unit = Held(1).front();
      ASSERT_TRUE(Release(1, {{unit.offset, 1}}).ok());
      ASSERT_TRUE(Lease(1, 1).ok());
    }
  }
  EXPECT_EQ(Read(1), FlowJob::kRecordBurst);
  // What time brings is read, and no more.
  Fill(&client);
  now_ += kMs;
  flow_->Tick(now_);
  flow_->Tick(now_);
  EXPECT_EQ(Read(1), FlowJob::kRecordBurst + FlowJob::kRecordsPerSecond / 1000);
}

TEST_F(FlowShares, ARingThatIsNeverEmptyTakesNothingFromAnotherOne) {
  Start(1, 10);
  Start(2, 10);
  for (int turn = 0; turn < 16; ++turn) {
    Fill(&clients_[1]);
    flow_->Tick(now_);
  }
  clients_[2].Iterate(8, kUnit);
  const uint64_t pushed = clients_[2].client->head.load();
  flow_->Tick(now_);
  EXPECT_EQ(Read(2), pushed);
}

TEST_F(FlowShares, ThousandsOfReleasesOnTheirWayAreFinishedSoManyInATurn) {
  constexpr Units kUnits = 3000;
  options_.pool_units = kUnits;
  flow_ = std::make_unique<Flow>(options_, &sink_);
  Start(1, kUnits);
  ASSERT_TRUE(Lease(1, kUnits, kUnits).ok());
  for (Units at = 0; at < kUnits; ++at) {
    const Status status = Release(1, {{at, 1}}, {{3, 0, 1}});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(Known(1).unfenced, kUnits);
  clients_[1].mark->mark[3].store(1);
  Units left = kUnits;
  int turns = 0;
  for (; left > 0 && turns < 1000; ++turns) {
    flow_->PollFences(now_);
    EXPECT_LE(left - Known(1).unfenced, 1024u);
    left = Known(1).unfenced;
  }
  EXPECT_EQ(left, 0u) << "all of them are seen in the end";
}

}  // namespace
}  // namespace sluice::flow
