// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/stream_queues.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::simgpu {
namespace {

class StreamQueuesTest : public ::testing::Test {
 protected:
  uint64_t Push(uint32_t stream, bool blocking = true, CommandKind kind = CommandKind::kKernel) {
    Command command{};
    command.id = ++next_;
    command.stream = stream;
    command.kind = kind;
    command.flags = blocking ? kBlocking : 0;
    queues_.Push(command);
    return command.id;
  }
  /// Takes the next operation, 0 if none is runnable.
  uint64_t Take() {
    const Command* head =
        queues_.Pick([this](const Command& c) { return !stuck_.contains(c.id); },
                     [](const Command& c) { return c.kind == CommandKind::kKernel; });
    if (head == nullptr) return 0;
    const uint64_t id = head->id;
    queues_.Pop(head->stream);
    return id;
  }
  StreamQueues queues_;
  std::set<uint64_t> stuck_;
  uint64_t next_ = 0;
};

TEST_F(StreamQueuesTest, RunsInTheOrderOfIssue) {
  Push(3, false);
  Push(1, false);
  Push(3, false);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
  EXPECT_EQ(Take(), 3u);
  EXPECT_EQ(Take(), 0u);
  EXPECT_TRUE(queues_.empty());
}

TEST_F(StreamQueuesTest, AWaitingHeadHoldsUpItsStreamOnly) {
  stuck_.insert(Push(1, false));
  Push(1, false);
  const uint64_t other = Push(2, false);
  EXPECT_EQ(Take(), other);
  EXPECT_EQ(Take(), 0u);
  stuck_.clear();
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
}

TEST_F(StreamQueuesTest, TheLegacyStreamIsABarrierBothWays) {
  stuck_.insert(Push(1));
  const uint64_t legacy = Push(kLegacyStream);
  const uint64_t after = Push(2);
  const uint64_t apart = Push(3, false);
  EXPECT_EQ(Take(), apart);
  EXPECT_EQ(Take(), 0u);
  stuck_.clear();
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), legacy);
  EXPECT_EQ(Take(), after);
}

TEST_F(StreamQueuesTest, EarlierBlockingWorkIsNotHeldUpByALaterBarrier) {
  stuck_.insert(Push(1));
  Push(kLegacyStream);
  stuck_.insert(Push(1));
  stuck_.erase(1);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);  // the third operation came after the barrier
  EXPECT_EQ(Take(), 0u);
}

TEST_F(StreamQueuesTest, WhatCostsNoTimeGoesFirst) {
  const uint64_t kernel = Push(1, false);
  const uint64_t mark = Push(2, false, CommandKind::kWriteValue);
  EXPECT_EQ(Take(), mark);
  EXPECT_EQ(Take(), kernel);
}

}  // namespace
}  // namespace sluice::simgpu
