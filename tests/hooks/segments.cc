// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/hooks/hook_fixture.h"

// A caching allocator that grows ranges of addresses by physical memory and shrinks them again, as
// frameworks do with expandable segments. leased_test runs it as a job, two at a time.

namespace sluice::hooks {
namespace {

using contract::ReadWrite;

/// A range of addresses, mapped from its start.
class Segment {
 public:
  Segment() { EXPECT_CU(cuMemAddressReserve(&base_, kMaxUnits * kUnit, 0, 0, 0)); }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() {
    while (!sizes_.empty()) Shrink();
    EXPECT_CU(cuMemAddressFree(base_, kMaxUnits * kUnit));
  }

  bool Full(size_t units) const { return mapped_ + units > kMaxUnits; }
  bool empty() const { return sizes_.empty(); }

  /// By one physical allocation, filled with a value of its own.
  CUresult Grow(size_t units, uint32_t value) {
    const CUmemAllocationProp prop = DeviceMemory();
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = cuMemCreate(&handle, units * kUnit, &prop, 0);
    if (result != CUDA_SUCCESS) return result;
    const CUdeviceptr at = base_ + mapped_ * kUnit;
    const CUmemAccessDesc access = ReadWrite();
    EXPECT_CU(cuMemMap(at, units * kUnit, 0, handle, 0));
    EXPECT_CU(cuMemSetAccess(at, units * kUnit, &access, 1));
    EXPECT_CU(cuMemRelease(handle));
    EXPECT_CU(cuMemsetD32_v2(at, value, units * kUnit / 4));
    sizes_.push_back({units, value});
    mapped_ += units;
    return CUDA_SUCCESS;
  }

  /// By the last one, which must hold what was written.
  void Shrink() {
    const auto [units, value] = sizes_.back();
    sizes_.pop_back();
    mapped_ -= units;
    const CUdeviceptr at = base_ + mapped_ * kUnit;
    std::vector<uint32_t> words(units * kUnit / 4);
    EXPECT_CU(cuMemcpyDtoH_v2(words.data(), at, units * kUnit));
    size_t wrong = 0;
    for (const uint32_t word : words) wrong += word != value ? 1 : 0;
    EXPECT_EQ(wrong, 0u) << "somebody else wrote here";
    EXPECT_CU(cuMemUnmap(at, units * kUnit));
  }

 private:
  static constexpr size_t kMaxUnits = 8;
  struct Piece {
    size_t units;
    uint32_t value;
  };
  CUdeviceptr base_ = 0;
  size_t mapped_ = 0;  // units
  std::vector<Piece> sizes_;
};

class Segments : public Hook {};

TEST_F(Segments, GrowAndShrink) {
  Begin();
  const char* seed = getenv("SLUICE_TEST_SEED");
  std::mt19937 random(seed == nullptr ? 1 : static_cast<unsigned>(atoi(seed)));
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  uint64_t refused = 0;
  uint64_t grown = 0;
  {
    Segment segments[3];
    std::vector<CUdeviceptr> blocks;
    for (int step = 0; step < 1500 && !HasFailure(); ++step) {
      Segment& segment = segments[below(3)];
      const uint32_t units = 1 + below(3);
      switch (below(4)) {
        case 0:
        case 1:
          if (segment.Full(units)) break;
          ++grown;
          if (segment.Grow(units, static_cast<uint32_t>(random())) != CUDA_SUCCESS) {
            // As frameworks do: what is cached goes back, and then once more.
            ++refused;
            for (Segment& other : segments) {
              while (!other.empty()) other.Shrink();
            }
            for (; !blocks.empty(); blocks.pop_back()) EXPECT_CU(cuMemFree_v2(blocks.back()));
            EXPECT_CU(segment.Grow(units, static_cast<uint32_t>(random())));
          }
          break;
        case 2:
          if (!segment.empty()) segment.Shrink();
          break;
        default:
          // The arena's own blocks live between them.
          if (blocks.size() < 6 && below(2) == 0) {
            CUdeviceptr at = 0;
            if (cuMemAlloc_v2(&at, 1 + below(kUnit)) == CUDA_SUCCESS) blocks.push_back(at);
          } else if (!blocks.empty()) {
            EXPECT_CU(cuMemFree_v2(blocks.back()));
            blocks.pop_back();
          }
      }
      if (step % 100 == 0) {
        EXPECT_EQ(Outside("physical"), 0u);
        EXPECT_LE(Says("held_bytes"), kLimit);
      }
    }
    for (const CUdeviceptr block : blocks) EXPECT_CU(cuMemFree_v2(block));
  }
  EXPECT_EQ(Says("live_bytes"), 0u);
  printf("refused=%llu\ngrown=%llu\n", static_cast<unsigned long long>(refused),
         static_cast<unsigned long long>(grown));
}

}  // namespace
}  // namespace sluice::hooks
