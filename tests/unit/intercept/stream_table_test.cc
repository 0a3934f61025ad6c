// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/streams/stream_table.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice {
namespace {

class StreamTableTest : public ::testing::Test {
 protected:
  uint32_t Acquire(uint64_t id, uint32_t pinned = kNoSlot, CUstream handle = nullptr,
                   CUcontext context = nullptr) {
    return table_->Acquire(id, handle, context, 0, pinned, marks_,
                           [this](uint32_t slot) { return busy_[slot]; });
  }
  std::unique_ptr<StreamTable> table_ = std::make_unique<StreamTable>();
  protocol::MarkPage marks_{};
  bool busy_[StreamTable::kSlots] = {};
};

TEST_F(StreamTableTest, ARetiredSlotIsReusedWhenItsMarksAreReached) {
  EXPECT_EQ(Acquire(100), 0u);
  EXPECT_EQ(table_->Issue(0), 1u);
  table_->Queued(0, 1);
  table_->Retire(0);
  EXPECT_EQ(table_->Find({100, nullptr}), kNoSlot);
  EXPECT_EQ(Acquire(101), 1u) << "mark 1 of slot 0 is still to come";
  marks_.mark[0] = 1;
  EXPECT_EQ(Acquire(102), 0u);
  EXPECT_EQ(table_->Issue(0), 2u) << "the counter goes on: mark 1 stays reached";
  EXPECT_EQ(table_->Find({102, nullptr}), 0u);
}

// The driver refuses marks of streams that have just ended.
TEST_F(StreamTableTest, AMarkThatIsNotQueuedIsNotWaitedFor) {
  EXPECT_EQ(Acquire(100), 0u);
  table_->Issue(0);
  table_->Retire(0);
  EXPECT_EQ(Acquire(101), 1u) << "it may be queued yet";
  table_->NotQueued(0);
  EXPECT_EQ(Acquire(102), 0u);
  EXPECT_EQ(table_->Issue(0), 2u) << "what was to be covered by mark 1 is covered by this one";
}

TEST_F(StreamTableTest, AStreamIsItsIdInItsContext) {
  auto* const context = reinterpret_cast<CUcontext>(0xc0);
  auto* const handle = reinterpret_cast<CUstream>(0x50);
  EXPECT_EQ(Acquire(100), 0u);
  EXPECT_EQ(table_->Find({100, context}), kNoSlot);
  EXPECT_EQ(Acquire(100, kNoSlot, handle, context), 1u);
  EXPECT_EQ(table_->Find({100, nullptr}), 0u);
  EXPECT_EQ(table_->Find({100, context}), 1u);
  EXPECT_EQ(table_->Still(1, {100, context}), 1u);
  EXPECT_EQ(table_->Still(1, {100, nullptr}), kNoSlot);
  EXPECT_EQ(table_->OfHandle(handle), 1u);
  EXPECT_EQ(Acquire(101, kNoSlot, handle, context), 2u);
  EXPECT_EQ(table_->OfHandle(handle), 2u);
  EXPECT_EQ(table_->Find({100, context}), kNoSlot) << "the handle is another stream's now";
  table_->Retire(2);
  EXPECT_EQ(table_->OfHandle(handle), kNoSlot);
}

TEST_F(StreamTableTest, WhenAllAreTakenAnIdleOneChangesHands) {
  for (uint64_t id = 0; id < StreamTable::kSlots; ++id) {
    EXPECT_EQ(Acquire(1000 + id), id);
    busy_[id] = true;
  }
  EXPECT_EQ(Acquire(1), kNoSlot);
  busy_[7] = busy_[9] = false;
  EXPECT_EQ(table_->Still(9, {1009, nullptr}), 9u);
  EXPECT_EQ(Acquire(2, 7), 9u) << "the pacing stream keeps its slot";
  EXPECT_EQ(table_->Still(9, {1009, nullptr}), kNoSlot);
  EXPECT_EQ(table_->Still(kNoSlot, {}), kNoSlot);
  EXPECT_EQ(table_->Find({1009, nullptr}), kNoSlot);
  EXPECT_EQ(table_->Find({2, nullptr}), 9u);
}

TEST_F(StreamTableTest, AMarkIsDueByBytesLaunchesOrTime) {
  Acquire(5);
  EXPECT_FALSE(table_->Due(0, 0, true));
  (*table_)[0].bytes = kMarkBytes;
  EXPECT_TRUE(table_->Due(0, 0, true));
  table_->Issue(0);
  EXPECT_FALSE(table_->Due(0, 0, true));
  table_->SetHeld(100 * kMarkPart * kMarkBytes);
  (*table_)[0].bytes = 100 * kMarkBytes - 1;
  EXPECT_FALSE(table_->Due(0, 0, true)) << "a part of what is held";
  ++(*table_)[0].bytes;
  EXPECT_TRUE(table_->Due(0, 0, true));
  table_->Issue(0);
  table_->SetHeld(kMarkPart);
  (*table_)[0].bytes = kMarkBytes - 1;
  EXPECT_FALSE(table_->Due(0, 0, true)) << "but never less than this";
  (*table_)[0].launches = kMarkLaunches;
  EXPECT_TRUE(table_->Due(0, 0, true));
  table_->Issue(0);
  (*table_)[0].launch_ns = 1000;
  EXPECT_FALSE(table_->Due(0, 0, true)) << "no profile, no credit";
  EXPECT_FALSE(table_->Due(0, 8001 * 8, true));
  EXPECT_TRUE(table_->Due(0, 8000, true));
  EXPECT_FALSE(table_->Due(0, 8000, false)) << "nobody is held to it";
}

TEST_F(StreamTableTest, MarksAreRareWhileNobodyWaitsForOne) {
  Acquire(5);
  table_->Uses(0);
  (*table_)[0].launches = kCalmFactor * kMarkLaunches - 1;
  EXPECT_FALSE(table_->Due(0, 0, false));
  EXPECT_TRUE(table_->Due(0, 0, true)) << "at once when somebody does";
  ++(*table_)[0].launches;
  EXPECT_TRUE(table_->Due(0, 0, false));
  table_->Issue(0);
  (*table_)[0].bytes = kCalmFactor * kMarkBytes - 1;
  EXPECT_FALSE(table_->Due(0, 0, false));
  table_->Uses(0);
  EXPECT_FALSE(table_->Due(0, 0, false)) << "one stream alone";
  table_->Uses(kNoSlot);
  EXPECT_TRUE(table_->Due(0, 0, false)) << "another one may want what this one freed";
  for (uint32_t mark = 1; mark <= kMixedMarks; ++mark) {
    EXPECT_TRUE(table_->Due(0, 0, false));
    table_->Queued(0, mark);
  }
  EXPECT_FALSE(table_->Due(0, 0, false)) << "and has not come back";
}

}  // namespace
}  // namespace sluice
