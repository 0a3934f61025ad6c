// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/program.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sluice::simgpu {
namespace {

using Steps = std::vector<uint32_t>;

Command Kernel(uint32_t function) {
  Command command{};
  command.kind = CommandKind::kKernel;
  command.kernel.function = function;
  return command;
}

std::vector<unsigned char> Written(const ProgramBuilder& builder, uint64_t offset = 0) {
  std::vector<unsigned char> memory(builder.bytes());
  builder.Write(memory.data(), offset);
  return memory;
}

TEST(ProgramTest, AStepIsReadyWhenAllBeforeItAreOver) {
  ProgramBuilder builder;
  const uint32_t a = builder.Add(Kernel(1), {});
  const uint32_t b = builder.Add(Kernel(2), {});
  const Steps both{a, b};
  const uint32_t c = builder.Add(Kernel(3), both);
  const Steps one{a};
  const uint32_t d = builder.Add(Kernel(4), one);
  const std::vector<unsigned char> memory = Written(builder);
  ProgramRun run(memory.data(), memory.size());
  EXPECT_EQ(run.ready(), (Steps{a, b}));
  run.Finish(a);
  EXPECT_EQ(run.ready(), (Steps{b, d}));
  EXPECT_EQ(run.step(d).kernel.function, 4u);
  run.Finish(b);
  EXPECT_EQ(run.ready(), (Steps{c, d}));
  run.Finish(d);
  EXPECT_FALSE(run.over());
  run.Finish(c);
  EXPECT_TRUE(run.over());
  EXPECT_TRUE(run.ready().empty());
}

TEST(ProgramTest, CarriesDataAndPointsAtIt) {
  ProgramBuilder builder;
  Command copy{};
  copy.kind = CommandKind::kCopy;
  copy.flags = kTargetStaged;
  const uint32_t kernel = builder.Add(Kernel(1), {});
  const uint32_t out = builder.Add(copy, {});
  const std::vector<unsigned char> args(200, 0x5a);
  const uint64_t data = builder.AddData(args);
  const uint64_t room = builder.AddRoom(1000);
  builder.UseData(kernel, data);
  builder.UseData(out, room);
  constexpr uint64_t kOffset = 4096;
  const std::vector<unsigned char> memory = Written(builder, kOffset);
  const ProgramRun run(memory.data(), memory.size());
  const uint64_t at = run.step(kernel).kernel.staged_args - kOffset;
  ASSERT_LE(at + args.size(), memory.size());
  EXPECT_EQ(memcmp(memory.data() + at, args.data(), args.size()), 0);
  EXPECT_EQ(run.step(out).copy.target, kOffset + builder.DataOffset(room));
  EXPECT_LE(builder.DataOffset(room) + 1000, memory.size());
}

TEST(ProgramTest, AnEmptyOrTornProgramIsOver) {
  const std::vector<unsigned char> empty = Written(ProgramBuilder());
  EXPECT_TRUE(ProgramRun(empty.data(), empty.size()).over());
  ProgramBuilder builder;
  builder.Add(Kernel(1), {});
  const std::vector<unsigned char> memory = Written(builder);
  EXPECT_FALSE(ProgramRun(memory.data(), memory.size()).over());
  EXPECT_TRUE(ProgramRun(memory.data(), sizeof(ProgramHeader) + 8).over());
  EXPECT_TRUE(ProgramRun(nullptr, 0).over());
}

}  // namespace
}  // namespace sluice::simgpu
