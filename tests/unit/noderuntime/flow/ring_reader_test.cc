// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/ring_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "intercept/protocol/page_access.h"
#include "noderuntime/flow/profile_page.h"

namespace sluice::flow {
namespace {

using protocol::OpKind;

class RingReaderTest : public ::testing::Test {
 protected:
  RingReaderTest() : reader_({nullptr, client_.get(), daemon_.get()}), profiler_({}) {}

  bool Push(OpKind kind, uint64_t value) {
    return protocol::PushRecord(*client_, *daemon_, cached_tail_,
                                {static_cast<uint8_t>(kind), 0, 0, 0, value});
  }

  std::unique_ptr<protocol::ClientPage> client_ = std::make_unique<protocol::ClientPage>();
  std::unique_ptr<protocol::DaemonPage> daemon_ = std::make_unique<protocol::DaemonPage>();
  uint64_t cached_tail_ = 0;
  RingReader reader_;
  scheduler::Profiler profiler_;
};

TEST_F(RingReaderTest, FeedsTheProfilerAndGivesPlacesBack) {
  Push(OpKind::kAlloc, 100);
  Push(OpKind::kLaunch, 7);
  Push(OpKind::kFree, 40);
  const RingReader::Outcome outcome = reader_.Consume(&profiler_, 100, 1000);
  EXPECT_EQ(outcome.launches, 1u);
  EXPECT_FALSE(outcome.lost);
  EXPECT_FALSE(outcome.more);
  EXPECT_EQ(profiler_.live_bytes(), 60u);
  EXPECT_EQ(daemon_->tail.load(), 3u);
}

TEST_F(RingReaderTest, KnowsWhereTheJobIsInItsCycle) {
  reader_.Follow(0);
  Push(OpKind::kLaunch, 7);
  reader_.Consume(&profiler_, 100, 1000);
  EXPECT_FALSE(reader_.place().known) << "nothing says where the cycle began";
  Push(OpKind::kIteration, 41);
  Push(OpKind::kLaunch, 7);
  protocol::PushRecord(*client_, *daemon_, cached_tail_,
                       {static_cast<uint8_t>(OpKind::kLaunch), 3, 0, 0, 9});
  Push(OpKind::kLaunch, 8);
  reader_.Consume(&profiler_, 100, 1000);
  EXPECT_TRUE(reader_.place().known);
  EXPECT_EQ(reader_.place().iteration, 41u);
  EXPECT_EQ(reader_.place().launches, 2u) << "another stream does not pace it";
  Push(OpKind::kIteration, 42);
  reader_.Consume(&profiler_, 100, 1000);
  EXPECT_EQ(reader_.place().iteration, 42u);
  EXPECT_EQ(reader_.place().launches, 0u);
  reader_.Follow(3);
  EXPECT_FALSE(reader_.place().known);
}

TEST_F(RingReaderTest, IsBounded) {
  for (int i = 0; i < 1000; ++i) Push(OpKind::kLaunch, 1);
  EXPECT_TRUE(reader_.Consume(&profiler_, 600, 1000).more);
  EXPECT_EQ(daemon_->tail.load(), 600u);
  EXPECT_FALSE(reader_.Consume(&profiler_, 600, 1000).more);
  EXPECT_EQ(profiler_.launches(), 1000u);
}

TEST_F(RingReaderTest, LostRecordsAreReportedOnce) {
  for (uint32_t i = 0; i < protocol::kRingRecords; ++i) ASSERT_TRUE(Push(OpKind::kCopy, 1));
  EXPECT_FALSE(Push(OpKind::kCopy, 1));
  EXPECT_TRUE(reader_.Consume(&profiler_, 10, 1000).lost);
  EXPECT_FALSE(reader_.Consume(&profiler_, 10, 1000).lost);
}

TEST_F(RingReaderTest, NonsenseIsSkippedAndReported) {
  Push(static_cast<OpKind>(0), 1);
  EXPECT_TRUE(reader_.Consume(&profiler_, 10, 1000).lost);
  Push(OpKind::kAlloc, 1001);
  EXPECT_TRUE(reader_.Consume(&profiler_, 10, 1000).lost);
  EXPECT_EQ(profiler_.live_bytes(), 0u);
  client_->head.store(~uint64_t{0});
  EXPECT_EQ(reader_.Consume(&profiler_, 10, 1000).launches, 0u);
}

// Both ends at once, over the same protocol code that real processes run; a race shows under the
// thread sanitizer, a wrong order as live bytes that are not zero in the end.
TEST_F(RingReaderTest, AClientThreadAndTheDaemonShareThePages) {
  constexpr int kIterations = 400;
  constexpr int kLaunches = 40;
  scheduler::Profile profile;
  profile.period = kLaunches;
  profile.launch_ns.assign(kLaunches, 5);
  const scheduler::CyclePlan plan = {{{0, 3, 1}, {20, 5, 1}}, 5, 1, 9};
  std::thread client([&] {
    protocol::ProfileImage image;
    uint32_t newest = 0;
    for (int i = 0; i < kIterations; ++i) {
      for (int launch = 0; launch < kLaunches; ++launch) {
        const bool grows = launch < kLaunches / 2;
        while (!Push(grows ? OpKind::kAlloc : OpKind::kFree, 10)) std::this_thread::yield();
        while (!Push(OpKind::kLaunch, static_cast<uint64_t>(launch))) std::this_thread::yield();
      }
      if (!protocol::ReadProfile(*daemon_, &image)) continue;
      EXPECT_GE(image.profile_id, newest);
      newest = image.profile_id;
      EXPECT_EQ(image.gates[1].need_units, newest > 0 ? 5u : 0u);
      (void)daemon_->flags.load(std::memory_order_acquire);
    }
  });
  uint64_t launches = 0;
  for (uint32_t turn = 1; launches < uint64_t{kIterations} * kLaunches; ++turn) {
    launches += reader_.Consume(&profiler_, 4096, 1000).launches;
    EXPECT_TRUE(PublishProfile(profile, plan, turn, daemon_.get()));
    daemon_->flags.store(turn & 1, std::memory_order_release);
  }
  client.join();
  EXPECT_EQ(profiler_.live_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::flow
