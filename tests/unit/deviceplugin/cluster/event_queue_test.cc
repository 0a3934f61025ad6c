// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/event_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <vector>

namespace sluice::deviceplugin {
namespace {

constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails

class EventQueueTest : public ::testing::Test {
 protected:
  EventQueueTest() {
    queue_.emplace(
        [this](const EventQueue::Event& event, const std::function<bool()>& stopped) {
          std::unique_lock lock(mutex_);
          ++calls_;
          changed_.notify_all();
          while (hangs_ && !stopped()) changed_.wait_for(lock, std::chrono::milliseconds(1));
          if (answer_.ok()) posted_.push_back(event.json);
          return answer_;
        },
        &figures_, std::chrono::milliseconds(1));
  }
  bool Await(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, done);
  }
  void Answer(Status status) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(status);
  }
  void Add(const std::string& json) { queue_->Add({"ns", json, "ns/a"}); }
  /// By the thread, soon after the call that is seen in `calls_`.
  static void AwaitCount(const std::atomic<uint64_t>& count, uint64_t wanted) {
    while (count != wanted) std::this_thread::yield();
  }

  Figures figures_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Status answer_;
  bool hangs_ = false;
  int calls_ = 0;
  std::vector<std::string> posted_;
  std::optional<EventQueue> queue_;  // last: its thread uses all of them
};

TEST_F(EventQueueTest, WhatTheServerDoesNotTakeNowIsToldLaterAndInOrder) {
  Answer(Status(StatusCode::kUnavailable, "429"));
  Add("first");
  Add("second");
  ASSERT_TRUE(Await([&] { return calls_ >= 3; }));
  EXPECT_EQ(figures_.events_written, 0u);
  Answer(Status());
  ASSERT_TRUE(Await([&] { return posted_.size() == 2; }));
  EXPECT_EQ(posted_, (std::vector<std::string>{"first", "second"}));
  AwaitCount(figures_.events_written, 2);
  EXPECT_EQ(figures_.events_failed, 0u);
}

TEST_F(EventQueueTest, OneThatIsThereAlreadyIsToldAndOneThatIsRefusedIsGivenUp) {
  Answer(Status(StatusCode::kFailedPrecondition, "409"));
  Add("again");
  AwaitCount(figures_.events_written, 1);
  Answer(Status(StatusCode::kPermissionDenied, "403"));
  Add("refused");
  AwaitCount(figures_.events_failed, 1);
  EXPECT_EQ(calls_, 2);
}

TEST_F(EventQueueTest, AServerThatHangsHoldsUpNobodyAndTheOldestAreGivenUp) {
  {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  Add("hangs");
  ASSERT_TRUE(Await([&] { return calls_ == 1; }));
  for (size_t i = 0; i <= EventQueue::kMost; ++i) Add(std::to_string(i));
  EXPECT_EQ(figures_.events_failed, 1u);
  {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
  }
  ASSERT_TRUE(Await([&] { return posted_.size() == EventQueue::kMost + 1; }));
  EXPECT_EQ(posted_[1], "1");
  EXPECT_EQ(posted_.back(), std::to_string(EventQueue::kMost));
}

TEST_F(EventQueueTest, ItsEndWaitsForNoServer) {
  {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  Add("hangs");
  ASSERT_TRUE(Await([&] { return calls_ == 1; }));
  queue_.reset();
}

}  // namespace
}  // namespace sluice::deviceplugin
