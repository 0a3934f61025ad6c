// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/headroom.h"

#include <gtest/gtest.h>

#include <random>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

DeviceIds TwoGpus() {
  Result<DeviceIds> ids = DeviceIds::Make({{"GPU-a", 8 * kMiB}, {"GPU-b", 4 * kMiB}}, kMiB);
  EXPECT_TRUE(ids.ok());
  return std::move(*ids);
}
std::vector<std::string> Some(const DeviceIds& ids, uint32_t gpu, uint32_t from, uint32_t count) {
  std::vector<std::string> some;
  for (uint32_t i = 0; i < count; ++i) some.push_back(ids.IdOf({gpu, from + i}));
  return some;
}

TEST(Withheld, NobodyBeyondHisGrantNothingKeptBack) {
  const DeviceIds ids = TwoGpus();
  EXPECT_TRUE(Withheld(ids, {}).empty());
  EXPECT_TRUE(Withheld(ids, {{"GPU-a", 2 * kMiB, 2 * kMiB, Some(ids, 0, 0, 2)}}).empty());
}

TEST(Withheld, TheLargestBurstOfAGpuNotTheirSum) {
  const DeviceIds ids = TwoGpus();
  const std::set<std::string> withheld =
      Withheld(ids, {{"GPU-a", 2 * kMiB, 4 * kMiB, Some(ids, 0, 0, 2)},
                     {"GPU-a", 1 * kMiB, 4 * kMiB, Some(ids, 0, 7, 1)}});
  const std::vector<std::string> expected = Some(ids, 0, 4, 3);
  EXPECT_EQ(withheld, std::set<std::string>(expected.begin(), expected.end()));
}

TEST(Withheld, APartOfAGranuleIsAWholeOne) {
  const DeviceIds ids = TwoGpus();
  EXPECT_EQ(Withheld(ids, {{"GPU-b", kMiB, kMiB + 1, Some(ids, 1, 0, 1)}}).size(), 1u);
}

TEST(Withheld, NeverMoreThanIsFreeAndNeverWhatIsAllocated) {
  const DeviceIds ids = TwoGpus();
  std::mt19937 random(7);
  const auto below = [&random](uint64_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<Holding> holdings;
    std::set<std::string> allocated;
    for (uint32_t gpu = 0; gpu < 2; ++gpu) {
      const uint32_t size = gpu == 0 ? 8 : 4;
      for (uint32_t at = below(3); at < size;) {
        const uint32_t count = 1 + below(size - at);
        const uint64_t granted = count * kMiB;
        holdings.push_back(
            {ids.gpus()[gpu].uuid, granted, granted + below(6 * kMiB), Some(ids, gpu, at, count)});
        allocated.insert(holdings.back().devices.begin(), holdings.back().devices.end());
        at += count + below(3);
      }
    }
    const std::set<std::string> withheld = Withheld(ids, holdings);
    for (const std::string& id : withheld) ASSERT_FALSE(allocated.contains(id));
    for (uint32_t gpu = 0; gpu < 2; ++gpu) {
      uint64_t burst = 0;
      uint64_t used = 0;
      for (const Holding& holding : holdings) {
        if (holding.gpu != ids.gpus()[gpu].uuid) continue;
        burst = std::max(burst, holding.limit_bytes - holding.granted_bytes);
        used += holding.devices.size();
      }
      uint64_t kept = 0;
      for (const std::string& id : withheld) kept += ids.Find(id)->gpu == gpu;
      const uint64_t size = gpu == 0 ? 8 : 4;
      ASSERT_EQ(kept, std::min(size - used, (burst + kMiB - 1) / kMiB));
    }
  }
}

}  // namespace
}  // namespace sluice::deviceplugin
