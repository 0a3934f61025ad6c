// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/touches.h"

#include <gtest/gtest.h>

#include "scheduler/trace/parse.h"

namespace sluice::scheduler::simulate {
namespace {

std::string Shown(const Touches& touches, size_t kernel) {
  std::string text;
  for (const Touch& touch : touches.Of(kernel)) {
    for (uint32_t i = 0; i < touch.buffers; ++i) {
      text += std::to_string(touch.buffer + i) + (touch.writes ? "w" : "r");
    }
  }
  text += "-";
  for (const uint32_t freed : touches.FreedAfter(kernel)) text += std::to_string(freed);
  return text;
}

TEST(Touches, NameEachBufferOncePerKernel) {
  const auto trace = trace::ParseTrace(
      "# sluice-trace 1\n"
      "block 0 persistent 100 0\n"
      "block 1 input 0 10\n"
      "block 2 transient 8 0\n"
      "block 3 transient 0 20\n"
      "block 4 transient 0 0\n"
      "alloc 2\nfree 2\n"  // nobody touched it
      "alloc 3\n"
      "op 0 first forward 1 0 1 0 r=0,1 w=3,0\n"
      "alloc 4\n"
      "op 1 second backward 1 0 1 0 r=3,4 w=\n"
      "free 4\n"
      "op 2 third optimizer 1 0 1 0 r= w=0\n"
      "free 3\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const auto at = trace::AtBatch(*trace, 3);
  ASSERT_TRUE(at.ok());
  const Touches touches = TouchesOf(*trace, *at);
  EXPECT_EQ(touches.buffer_bytes, (std::vector<uint64_t>{100, 30, 8, 60, 0}));
  EXPECT_EQ(Shown(touches, 0), "0w1r3w-");
  EXPECT_EQ(Shown(touches, 1), "3r-4") << "a buffer of no bytes is freed, but never touched";
  EXPECT_EQ(Shown(touches, 2), "0w-3");
  EXPECT_EQ(Shown(touches, 3), "-") << "there is no such kernel";
}

TEST(Touches, KeptMemoryIsTouchedWhereBlocksLie) {
  const auto trace = trace::ParseTrace(
      "# sluice-trace 1\n"
      "block 0 persistent 1000 0\n"
      "block 1 transient 2048 0\n"
      "block 2 transient 1024 0\n"
      "block 3 transient 512 0\n"
      "alloc 1\n"
      "op 0 first forward 1 0 1 0 r=0 w=1\n"
      "alloc 2\n"
      "op 1 second forward 1 0 1 0 r=1 w=2\n"
      "free 1\n"
      "alloc 3\n"
      "op 2 third backward 1 0 1 0 r=2 w=3\n"
      "free 2\nfree 3\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const auto at = trace::AtBatch(*trace, 1);
  ASSERT_TRUE(at.ok());
  const auto touches = KeptTouchesOf(*trace, *at, 1024);
  ASSERT_TRUE(touches.ok()) << touches.status().message();
  // 1 at 0, 2 at 2048, 3 where 1 was; 0 behind them, from 3072 to 4072.
  EXPECT_EQ(touches->buffer_bytes, (std::vector<uint64_t>(4, 1024)));
  EXPECT_EQ(Shown(*touches, 0), "3r0w1w-");
  EXPECT_EQ(Shown(*touches, 1), "0r1r2w-") << "nothing is ever gone";
  EXPECT_EQ(Shown(*touches, 2), "2r0w-");
}

}  // namespace
}  // namespace sluice::scheduler::simulate
