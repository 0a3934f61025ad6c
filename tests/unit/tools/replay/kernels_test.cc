// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/simgpu/nvrtc_module.h"
#include "tools/replay/embedded.h"
#include "tools/replay/launch_table.h"
#include "tools/replay/writers.h"

// The kernel as the simulated GPU compiles it, run over memory of this process.

namespace sluice::replay {
namespace {

using simgpu::nvrtc::Dim;
using simgpu::nvrtc::NvrtcModule;

class ReplayKernelsTest : public ::testing::Test {
 protected:
  ReplayKernelsTest() : module_(std::string(kKernelSource) + "REPLAY_KERNEL(replay_op)\n") {}

  static BlockWork Work(std::vector<uint32_t>& block, uint32_t check, uint32_t write) {
    return {reinterpret_cast<uint64_t>(block.data()), block.size(), check, write, 77, 0};
  }
  void Run(std::vector<BlockWork> work, unsigned columns, uint64_t stride, uint64_t operation = 1) {
    const uint64_t ns = 0;
    const BlockWork* rows = work.data();
    Counts* counts = &counts_;
    module_.Run("replay_op", Dim{columns, static_cast<unsigned>(1 + work.size()), 1},
                Dim{kThreads, 1, 1}, ns, rows, counts, operation, stride);
  }

  NvrtcModule module_;
  Counts counts_{};
};

constexpr uint32_t kSeed = 12345;
constexpr uint32_t kNext = 999;

TEST_F(ReplayKernelsTest, WhatOneLaunchWritesTheNextFinds) {
  // Of one word, of less and of more than a tile, and more tiles than columns.
  for (const size_t words : {1u, 100u, 2048u, 2049u, 50'000u}) {
    counts_ = {};
    std::vector<uint32_t> block(words, 0);
    Run({Work(block, 0, kSeed)}, 3, 1);
    EXPECT_EQ(counts_.checked, 0u);
    Run({Work(block, kSeed, kNext)}, 2, 1);
    EXPECT_EQ(counts_.checked, words);
    EXPECT_EQ(counts_.wrong, 0u);
    Run({Work(block, kNext, 0)}, 1, 1);
    EXPECT_EQ(counts_.checked, 2 * words);
    EXPECT_EQ(counts_.wrong, 0u) << words;
    EXPECT_EQ(counts_.first_operation, 0u);
  }
}

TEST_F(ReplayKernelsTest, EveryWrongWordCountsAndTheFirstOperationIsNamed) {
  std::vector<uint32_t> block(5000, 0);
  std::vector<uint32_t> other(10, 0);
  Run({Work(block, 0, kSeed), Work(other, 0, kSeed)}, 2, 1);
  block.front() ^= 1;
  block[2500] ^= 1u << 31;
  block.back() ^= 4;
  Run({Work(other, kSeed, 0), Work(block, kSeed, 0)}, 2, 1, 42);
  EXPECT_EQ(counts_.checked, 5010u);
  EXPECT_EQ(counts_.wrong, 3u);
  EXPECT_EQ(counts_.first_operation, 42u);
  EXPECT_EQ(counts_.first_block, 77u);
  Run({Work(block, kSeed, 0)}, 2, 1, 43);
  EXPECT_EQ(counts_.wrong, 6u);
  EXPECT_EQ(counts_.first_operation, 42u);
}

TEST_F(ReplayKernelsTest, ThePatternOfAnotherSeedOrPlaceIsWrong) {
  std::vector<uint32_t> block(1000, 0);
  Run({Work(block, 0, kSeed)}, 1, 1);
  EXPECT_EQ(std::set<uint32_t>(block.begin(), block.end()).size(), 1000u);
  Run({Work(block, kNext, 0)}, 1, 1);
  EXPECT_EQ(counts_.wrong, 1000u);
  // As if the block had moved by a word.
  std::vector<uint32_t> moved(block.begin() + 1, block.end());
  Run({Work(moved, kSeed, 0)}, 1, 1);
  EXPECT_EQ(counts_.wrong, 1999u);
}

TEST_F(ReplayKernelsTest, SparseTouchesOneWordInEachStrideAndTheLast) {
  constexpr uint64_t kStride = 256;
  for (const size_t words : {1u, 256u, 257u, 1000u}) {
    counts_ = {};
    std::vector<uint32_t> block(words, 0);
    Run({Work(block, 0, kSeed)}, 1, kStride);
    for (size_t i = 0; i < words; ++i) {
      EXPECT_EQ(block[i] != 0, i % kStride == 0 || i + 1 == words) << words << " " << i;
    }
    Run({Work(block, kSeed, 0)}, 1, kStride);
    EXPECT_EQ(counts_.checked, PlacesOf(words, kStride));
    EXPECT_EQ(counts_.wrong, 0u);
  }
}

TEST_F(ReplayKernelsTest, TheFirstArgumentIsTheDuration) {
  const void* place = module_.Variable(SIMGPU_DURATION_PREFIX "replay_op");
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(*static_cast<const uint32_t*>(place), 0u);
}

}  // namespace
}  // namespace sluice::replay
