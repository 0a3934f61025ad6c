// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/from_trace.h"

#include <gtest/gtest.h>

#include "scheduler/trace/parse.h"

namespace sluice::scheduler {
namespace {

trace::Trace Read() {
  const auto read = trace::ParseTrace(
      "# sluice-trace 1\n"
      "block 0 persistent 100 0\n"
      "block 1 input 0 10\n"
      "block 2 transient 5 10\n"
      "block 3 transient 0 0\n"
      "block 4 transient 8 0\n"
      "alloc 2\n"
      "op 0 first forward 0 0 0 0 r=0,1 w=2\n"
      "alloc 3\n"
      "alloc 4\n"
      "free 2\n"
      "free 3\n"
      "free 4\n");
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? *read : trace::Trace();
}

TEST(FromTraceTest, TransientBlocksLiveFromTheirAllocationToTheirFree) {
  const auto made = InstanceOf(Read(), 3, 1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(WriteInstance(*made, {0, 40}), "id,lower,upper,size,offset\n2,0,4,35,0\n4,3,6,8,40\n");
}

TEST(FromTraceTest, SizesAreRoundedUpToGranules) {
  const auto made = InstanceOf(Read(), 3, 8);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->buffers[0].size, 40u);
  EXPECT_EQ(made->buffers[1].size, 8u);
}

TEST(FromTraceTest, WhatIsTooMuchIsNamed) {
  EXPECT_EQ(InstanceOf(Read(), 0, 1).status().message(), "batch: 0 must be between 1 and 1048576");
  const std::string why = InstanceOf(Read(), 1, kMaxTotalBytes).status().message();
  EXPECT_EQ(why.substr(0, 15), "block 2: size: ") << why;
}

}  // namespace
}  // namespace sluice::scheduler
