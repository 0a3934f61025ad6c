// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace sluice::noded {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() : loop_(EventLoop::Create()) {
    for (UniqueFd& fd : ready_) fd.reset(::eventfd(1, EFD_CLOEXEC));
  }
  Result<EventLoop> loop_;
  UniqueFd ready_[2];
};

TEST_F(EventLoopTest, CallsWhatIsReadyUntilItIsRemoved) {
  int calls = 0;
  const auto token = loop_->Add(ready_[0].get(), EPOLLIN, [&](uint32_t events) {
    EXPECT_EQ(events, uint32_t{EPOLLIN});
    ++calls;
  });
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(*loop_->RunOnce(0), 1);
  EXPECT_EQ(*loop_->RunOnce(0), 1);
  EXPECT_EQ(calls, 2);
  loop_->Remove(*token);
  EXPECT_EQ(*loop_->RunOnce(0), 0);
  EXPECT_EQ(calls, 2);
}

// The second was ready in the same turn; what it belonged to may be gone.
TEST_F(EventLoopTest, AHandlerMayRemoveItselfAndOthers) {
  EventLoop::Token tokens[2] = {};
  int calls = 0;
  for (int i = 0; i < 2; ++i) {
    tokens[i] = *loop_->Add(ready_[i].get(), EPOLLIN, [&](uint32_t) {
      ++calls;
      loop_->Remove(tokens[0]);
      loop_->Remove(tokens[1]);
    });
  }
  ASSERT_TRUE(loop_->RunOnce(0).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, InterestCanChange) {
  int calls = 0;
  const auto token = loop_->Add(ready_[0].get(), EPOLLIN, [&](uint32_t) { ++calls; });
  loop_->Modify(*token, 0);
  ASSERT_TRUE(loop_->RunOnce(0).ok());
  EXPECT_EQ(calls, 0);
  loop_->Modify(*token, EPOLLOUT);
  ASSERT_TRUE(loop_->RunOnce(0).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, WaitsShorterThanAMillisecond) {
  const uint64_t start = NowNs();
  ASSERT_TRUE(loop_->RunOnce(200'000).ok());
  EXPECT_GE(NowNs() - start, 190'000u);
}

}  // namespace
}  // namespace sluice::noded
