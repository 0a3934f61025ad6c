// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/hooks/hook_fixture.h"

// A program whose own blocks lie so that nothing longer than a unit is free, and that asks for long
// blocks all the same. stitched_test runs it as a job, two at a time.

namespace sluice::hooks {
namespace {

struct Filled {
  CUdeviceptr at;
  size_t bytes;
  uint32_t value;
};

class Scattered : public Hook {
 protected:
  /// What is allocated from here on begins at the start of a unit, if it is whole units.
  void BeginAtABound() {
    Begin();
    CUdeviceptr at = 0;
    EXPECT_CU(cuMemAlloc_v2(&at, 1));
    CUdeviceptr rest = 0;
    EXPECT_CU(cuMemAlloc_v2(&rest, kUnit - at % kUnit - 512));
  }

  /// Filled with a value of its own; 0 bytes: out of memory.
  Filled Allocate(size_t bytes, bool stream_ordered) {
    Filled block{0, bytes, ++values_};
    const CUresult result = stream_ordered ? cuMemAllocAsync(&block.at, bytes, nullptr)
                                           : cuMemAlloc_v2(&block.at, bytes);
    if (result != CUDA_SUCCESS) return {0, 0, 0};
    EXPECT_CU(cuMemsetD32Async(block.at, block.value, bytes / 4, nullptr));
    return block;
  }

  void Free(const Filled& block, bool stream_ordered) {
    std::vector<uint32_t> words(block.bytes / 4);
    EXPECT_CU(cuMemcpyDtoH_v2(words.data(), block.at, block.bytes));
    const auto wrong = std::count_if(words.begin(), words.end(),
                                     [&](uint32_t word) { return word != block.value; });
    EXPECT_EQ(wrong, 0) << "somebody else wrote here";
    EXPECT_CU(stream_ordered ? cuMemFreeAsync(block.at, nullptr) : cuMemFree_v2(block.at));
  }

  uint32_t values_ = 0;
};

TEST_F(Scattered, UnitsThatLieApartAreOneBlock) {
  BeginAtABound();
  constexpr size_t kAll = kLimit / kUnit;
  for (const bool stream_ordered : {true, false}) {
    std::vector<Filled> singles;
    // What came first takes one.
    for (size_t i = 0; i + 1 < kAll; ++i) {
      singles.push_back(Allocate(kUnit, stream_ordered));
      ASSERT_NE(singles.back().bytes, 0u) << i;
    }
    std::vector<Filled> kept;
    for (size_t i = 0; i < singles.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(singles[i]);
      } else {
        Free(singles[i], stream_ordered);
      }
    }
    const size_t apart = singles.size() / 2 * kUnit;
    const Filled block = Allocate(apart, stream_ordered);
    ASSERT_EQ(block.bytes, apart) << "what lies apart was not put side by side";
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_CU(cuMemGetAddressRange_v2(&base, &bytes, block.at + kUnit + 1));
    EXPECT_EQ(base, block.at);
    EXPECT_EQ(bytes, apart);
    EXPECT_EQ(Allocate(2 * kUnit, stream_ordered).bytes, 0u) << "more than the limit";
    for (const Filled& one : kept) Free(one, stream_ordered);
    Free(block, stream_ordered);
  }
}

std::mt19937 Random() {
  const char* seed = getenv("SLUICE_TEST_SEED");
  return std::mt19937(seed == nullptr ? 1 : static_cast<unsigned>(atoi(seed)));
}

TEST_F(Scattered, ComeAndGo) {
  BeginAtABound();
  std::mt19937 random = Random();
  std::vector<Filled> blocks;
  size_t held = 1;  // by what came first
  uint64_t long_ones = 0;
  const auto free_one = [&] {
    const size_t which = random() % blocks.size();
    Free(blocks[which], blocks[which].value % 2 == 0);
    held -= blocks[which].bytes / kUnit;
    blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(which));
  };
  for (int step = 0; step < 400; ++step) {
    const size_t room = kLimit / kUnit - held;
    const size_t units = 1 + random() % 5;
    if (units > room) {
      free_one();
      continue;
    }
    const Filled block = Allocate(units * kUnit, (values_ + 1) % 2 == 0);
    ASSERT_EQ(block.bytes, units * kUnit)
        << "step " << step << ": " << held << " units in use of " << kLimit / kUnit;
    held += units;
    long_ones += units > 1 ? 1 : 0;
    blocks.push_back(block);
  }
  while (!blocks.empty()) free_one();
  std::printf("long=%llu\n", static_cast<unsigned long long>(long_ones));
}

/// Blocks that begin and end within units, beside each other in the same ones.
TEST_F(Scattered, PartsOfUnitsComeAndGo) {
  Begin();
  std::mt19937 random = Random();
  std::vector<Filled> blocks;
  uint64_t long_ones = 0;
  uint64_t refused = 0;
  for (int step = 0; step < 400; ++step) {
    const size_t bytes = (1 + random() % 24) * (kUnit / 8);
    const Filled block = Allocate(bytes, random() % 2 == 0);
    if (block.bytes > 0) blocks.push_back(block);
    if (block.bytes > kUnit) ++long_ones;
    if (block.bytes == 0) ++refused;
    // Kept nearly full, so that there are seldom runs.
    while (block.bytes == 0 && blocks.size() > 8) {
      const size_t which = random() % blocks.size();
      Free(blocks[which], random() % 2 == 0);
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(which));
      if (random() % 2 == 0) break;
    }
  }
  EXPECT_GT(long_ones, 40u);
  EXPECT_GT(refused, 0u) << "there was always a run";
  for (const Filled& block : blocks) Free(block, true);
}

}  // namespace
}  // namespace sluice::hooks
