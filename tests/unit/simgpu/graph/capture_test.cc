// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/capture.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::simgpu {
namespace {

class CapturesTest : public ::testing::Test {
 protected:
  CUresult Begin(StreamCapture* stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return captures_.Begin(&store_, stream, mode, nullptr, {});
  }
  CUgraphNode Add(StreamCapture* stream) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(captures_.Add(&store_, stream, EmptyWork{}, &node), CUDA_SUCCESS);
    return node;
  }
  CUresult End(StreamCapture* stream) { return captures_.End(&store_, stream, &graph_); }

  GraphStore store_;
  Captures captures_;
  StreamCapture a_, b_;
  CUgraph graph_ = nullptr;
};

TEST_F(CapturesTest, NodesOfAStreamFollowEachOther) {
  ASSERT_EQ(Begin(&a_), CUDA_SUCCESS);
  const CUgraphNode first = Add(&a_);
  const CUgraphNode second = Add(&a_);
  ASSERT_EQ(second->dependencies.size(), 1u);
  EXPECT_EQ(second->dependencies[0].node, first);
  ASSERT_EQ(End(&a_), CUDA_SUCCESS);
  EXPECT_EQ(graph_->nodes.size(), 2u);
  EXPECT_FALSE(graph_->capturing);
  bool capturing = true;
  EXPECT_EQ(captures_.Use(a_, false, &capturing), CUDA_SUCCESS);
  EXPECT_FALSE(capturing);
}

TEST_F(CapturesTest, AJoinedStreamIsPartOfTheSequence) {
  EventCapture fork, join;
  ASSERT_EQ(Begin(&a_), CUDA_SUCCESS);
  Add(&a_);
  captures_.Record(a_, &fork);
  ASSERT_EQ(captures_.Join(&b_, fork, false), CUDA_SUCCESS);
  const CUgraphNode theirs = Add(&b_);
  captures_.Record(b_, &join);
  ASSERT_EQ(captures_.Join(&a_, join, false), CUDA_SUCCESS);
  ASSERT_EQ(captures_.Join(&a_, join, false), CUDA_SUCCESS);  // twice does no harm
  const CUgraphNode last = Add(&a_);
  EXPECT_EQ(last->dependencies.size(), 2u);
  EXPECT_TRUE(IsBefore(theirs, last->dependencies));
  EXPECT_EQ(End(&a_), CUDA_SUCCESS);
  EXPECT_EQ(b_.session.load(), 0u);
  EXPECT_EQ(captures_.Join(&b_, join, false), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CapturesTest, WhatIsNotJoinedTakesTheGraphAway) {
  EventCapture fork;
  ASSERT_EQ(Begin(&a_), CUDA_SUCCESS);
  captures_.Record(a_, &fork);
  ASSERT_EQ(captures_.Join(&b_, fork, false), CUDA_SUCCESS);
  const CUgraphNode lost = Add(&b_);
  EXPECT_EQ(End(&a_), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_FALSE(IsLive(lost));
}

TEST_F(CapturesTest, ModesSayWhoMayDoWhat) {
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
  constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  struct Case {
    CUstreamCaptureMode capture, thread;
    bool own, other;  // allowed in the capturing thread, in another one
  };
  const Case cases[] = {{kGlobal, kGlobal, false, false}, {kGlobal, kLocal, false, true},
                        {kGlobal, kRelaxed, true, true},  {kLocal, kGlobal, false, true},
                        {kLocal, kLocal, false, true},    {kLocal, kRelaxed, true, true},
                        {kRelaxed, kGlobal, true, true},  {kRelaxed, kLocal, true, true}};
  for (const Case& c : cases) {
    for (const bool own : {true, false}) {
      ASSERT_EQ(Begin(&a_, c.capture), CUDA_SUCCESS);
      CUresult result = CUDA_SUCCESS;
      if (own) {
        result = captures_.CheckUnsafeCall(c.thread);
      } else {
        std::thread([&] { result = captures_.CheckUnsafeCall(c.thread); }).join();
      }
      const bool allowed = own ? c.own : c.other;
      EXPECT_EQ(result == CUDA_SUCCESS, allowed) << c.capture << c.thread << own;
      EXPECT_EQ(End(&a_) == CUDA_SUCCESS, allowed);
    }
  }
}

TEST_F(CapturesTest, AnInvalidSequenceTakesNothingMore) {
  ASSERT_EQ(Begin(&a_), CUDA_SUCCESS);
  EXPECT_EQ(captures_.Refuse(a_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(captures_.Refuse(a_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraphNode node = nullptr;
  EXPECT_EQ(captures_.Add(&store_, &a_, EmptyWork{}, &node), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(&a_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(captures_.Refuse(a_), CUDA_SUCCESS);  // an ordinary stream again
}

TEST_F(CapturesTest, TheLegacyStreamMindsBlockingStreamsOfItsContextOnly) {
  StreamCapture legacy;
  bool capturing = false;
  a_.blocking = false;
  ASSERT_EQ(Begin(&a_), CUDA_SUCCESS);
  EXPECT_EQ(captures_.Use(legacy, true, &capturing), CUDA_SUCCESS);
  b_.blocking = true;
  b_.context = reinterpret_cast<const Context*>(this);
  ASSERT_EQ(Begin(&b_), CUDA_SUCCESS);
  EXPECT_EQ(captures_.Use(legacy, true, &capturing), CUDA_SUCCESS);
  legacy.context = b_.context;
  EXPECT_EQ(captures_.Use(legacy, true, &capturing), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(End(&b_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(&a_), CUDA_SUCCESS);
}

}  // namespace
}  // namespace sluice::simgpu
