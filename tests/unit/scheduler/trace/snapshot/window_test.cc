// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/window.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::trace {
namespace {

SnapshotEntry Alloc(uint64_t address, uint64_t bytes) {
  return {SnapshotAction::kAlloc, address, bytes, 0};
}
SnapshotEntry Free(uint64_t address, uint64_t bytes = 0) {
  return {SnapshotAction::kFreeRequested, address, bytes, 0};
}
SnapshotEntry Completed(uint64_t address) {
  return {SnapshotAction::kFreeCompleted, address, 0, 0};
}

class Window : public ::testing::Test {
 protected:
  void Take(const std::vector<SnapshotEntry>& entries) {
    for (const SnapshotEntry& entry : entries) {
      const Status status = window_.Take(entry);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  Trace Finish() {
    Result<Trace> trace = window_.Finish({{"source", "test"}});
    EXPECT_TRUE(trace.ok()) << trace.status().message();
    return trace.ok() ? std::move(trace).value() : Trace();
  }
  SnapshotWindow window_;
};

Block Persistent(uint64_t bytes) { return {BlockKind::kPersistent, {bytes, 0}}; }
Block Transient(uint64_t bytes) { return {BlockKind::kTransient, {bytes, 0}}; }

TEST_F(Window, WhatIsAllocatedAndFreedInItIsTransient) {
  window_.Open();
  Take({Alloc(1, 10), Alloc(2, 20), Free(1), Completed(1), Alloc(1, 30), Free(1), Free(2)});
  const Trace trace = Finish();
  EXPECT_EQ(trace.blocks, (std::vector<Block>{Transient(10), Transient(20), Transient(30)}));
  EXPECT_EQ(trace.events, (std::vector<Event>{{EventKind::kAlloc, 0},
                                              {EventKind::kAlloc, 1},
                                              {EventKind::kFree, 0},
                                              {EventKind::kAlloc, 2},
                                              {EventKind::kFree, 2},
                                              {EventKind::kFree, 1}}));
  EXPECT_TRUE(trace.operators.empty());
  EXPECT_EQ(trace.header, (std::vector<HeaderEntry>{{"source", "test"}}));
}

TEST_F(Window, WhatLivesAtOneOfItsEndsIsPersistent) {
  Take({Alloc(1, 10), Alloc(2, 20), Alloc(3, 30), Free(3)});
  window_.Open();
  Take({Alloc(3, 31), Free(2), Alloc(4, 40), Free(3), Alloc(2, 21)});
  const Trace trace = Finish();
  // 1 lives through it, 2 until it, 4 and the second at 2 beyond it; the first at 3 not in it.
  EXPECT_EQ(trace.blocks, (std::vector<Block>{Persistent(10), Persistent(20), Persistent(40),
                                              Persistent(21), Transient(31)}));
  EXPECT_EQ(trace.events, (std::vector<Event>{{EventKind::kAlloc, 4}, {EventKind::kFree, 4}}));
}

TEST_F(Window, ABlockFromBeforeTheRecordShowsWhenItIsFreed) {
  Take({Free(1, 10), Completed(1), Completed(9)});
  window_.Open();
  Take({Free(2, 20), Completed(2), Alloc(1, 11), Alloc(2, 21), Free(2), Free(1)});
  const Trace trace = Finish();
  EXPECT_EQ(trace.blocks, (std::vector<Block>{Persistent(20), Transient(11), Transient(21)}));
}

TEST_F(Window, ACompletedFreeWithoutARequestIsAFree) {
  window_.Open();
  Take({Alloc(1, 10), Completed(1), Alloc(1, 20), Free(1), Completed(1)});
  EXPECT_EQ(Finish().blocks, (std::vector<Block>{Transient(10), Transient(20)}));
}

TEST_F(Window, OtherActionsAreNothing) {
  window_.Open();
  Take({{SnapshotAction::kOther, 1, 1, 1}, {SnapshotAction::kUnknown, 1, 1, 1}});
  EXPECT_TRUE(Finish().blocks.empty());
}

TEST_F(Window, ARecordThatContradictsItselfIsRefused) {
  Take({Alloc(1, 10)});
  EXPECT_EQ(window_.Take(Alloc(1, 5)).message(), "addr: 1 is allocated and was not freed before");
  Take({Free(1)});
  EXPECT_EQ(window_.Take(Free(1)).message(), "addr: 1 is freed and was not allocated since");
  Take({Free(2)});
  EXPECT_EQ(window_.Take(Free(2)).message(), "addr: 2 is freed and was not allocated since");
}

TEST_F(Window, AHeaderThatTheFormatCannotHoldIsRefused) {
  EXPECT_EQ(window_.Finish({{"two words", ""}}).status().message(),
            "header: the key must be of letters, digits, '_', '-' or '.'");
}

TEST_F(Window, ATraceHasABound) {
  window_.Open();
  for (size_t i = 0; i <= kMaxBlocks; ++i) {
    ASSERT_TRUE(window_.Take(Alloc(1, 1)).ok());
    ASSERT_TRUE(window_.Take(Free(1)).ok());
  }
  EXPECT_EQ(window_.Finish({}).status().message(), "block: more than 1048576 blocks");
}

}  // namespace
}  // namespace sluice::scheduler::trace
