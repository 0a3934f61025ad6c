// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/preferred.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

class Preferred : public ::testing::Test {
 protected:
  std::string Id(uint32_t gpu, uint32_t number) const { return ids_.IdOf({gpu, number}); }
  /// So many of each, the first ones.
  std::vector<std::string> Free(std::vector<uint32_t> counts) const {
    std::vector<std::string> free;
    for (uint32_t gpu = 0; gpu < counts.size(); ++gpu) {
      for (uint32_t number = 0; number < counts[gpu]; ++number) free.push_back(Id(gpu, number));
    }
    return free;
  }
  uint32_t Chosen(const std::vector<std::string>& free, size_t size, Packing packing,
                  const std::vector<std::string>& must = {}, uint64_t room = 0) const {
    Preference preference = {packing};
    if (room > 0) preference.room = [room](uint64_t) { return room; };
    const auto chosen = PreferredIds(ids_, free, must, size, preference);
    EXPECT_TRUE(chosen.ok()) << chosen.status().message();
    if (!chosen.ok()) return 99;
    EXPECT_EQ(chosen->size(), size);
    const auto gpu = GpuOf(ids_, *chosen);
    EXPECT_TRUE(gpu.ok()) << gpu.status().message();
    return gpu.ok() ? *gpu : 99;
  }

  DeviceIds ids_ = *DeviceIds::Make({{"a", 8 * kGiB}, {"b", 8 * kGiB}, {"c", 8 * kGiB}}, kGiB);
};

TEST_F(Preferred, PacksOrSpreads) {
  const auto free = Free({5, 3, 8});
  EXPECT_EQ(Chosen(free, 2, Packing::kPack), 1u);
  EXPECT_EQ(Chosen(free, 4, Packing::kPack), 0u);
  EXPECT_EQ(Chosen(free, 6, Packing::kPack), 2u);
  EXPECT_EQ(Chosen(free, 2, Packing::kSpread), 2u);
  EXPECT_EQ(Chosen(Free({4, 4, 4}), 4, Packing::kPack), 0u) << "the first of equals";
}

TEST_F(Preferred, GoesWhereTheRestOfItsPodHasRoom) {
  const auto free = Free({5, 3, 8});
  EXPECT_EQ(Chosen(free, 2, Packing::kPack, {}, 4), 0u);
  EXPECT_EQ(Chosen(free, 2, Packing::kPack, {}, 6), 2u);
  EXPECT_EQ(Chosen(free, 2, Packing::kPack, {}, 9), 1u) << "nowhere: as if nothing was known";
  EXPECT_EQ(Chosen(free, 2, Packing::kSpread, {}, 4), 2u);
  EXPECT_EQ(Chosen(free, 2, Packing::kPack, {Id(1, 7)}, 8), 1u);
}

TEST_F(Preferred, GoesWhereItMust) {
  const auto free = Free({5, 3, 8});
  EXPECT_EQ(Chosen(free, 2, Packing::kPack, {Id(2, 7)}), 2u);
  // Kubelet names what it must have among the free ones or beside them.
  EXPECT_EQ(Chosen(free, 4, Packing::kPack, {Id(1, 7)}), 1u);
  EXPECT_EQ(PreferredIds(ids_, free, {Id(1, 7)}, 5, {Packing::kPack}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(PreferredIds(ids_, free, {Id(0, 0), Id(1, 0)}, 2, {Packing::kPack}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PreferredIds(ids_, free, {Id(0, 0), Id(0, 1)}, 1, {Packing::kPack}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(Preferred, NoTwoGpusAreOne) {
  const Status refused = PreferredIds(ids_, Free({5, 3, 4}), {}, 6, {Packing::kPack}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "no single GPU has 6 granules (6.0 GiB) free; the most is 5 granules (5.0 GiB)");
  const Status split = GpuOf(ids_, {Id(0, 1), Id(1, 1)}).status();
  EXPECT_EQ(split.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(split.message().find("2 granules (2.0 GiB)"), std::string::npos) << split.message();
}

TEST_F(Preferred, NamesWhatIsWrong) {
  EXPECT_NE(GpuOf(ids_, {"x-1"}).status().message().find("device id 'x-1'"), std::string::npos);
  EXPECT_NE(GpuOf(ids_, {Id(0, 1), Id(0, 1)}).status().message().find("twice"), std::string::npos);
  EXPECT_EQ(GpuOf(ids_, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(PreferredIds(ids_, {"x-1"}, {}, 1, {Packing::kPack}).status().code(),
            StatusCode::kInvalidArgument);
}

/// Whatever is free: what is chosen is free, on one GPU, and there is a choice if any GPU has room.
TEST_F(Preferred, ChoosesWheneverItCan) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> free;
    std::vector<size_t> room(3);
    for (uint32_t gpu = 0; gpu < 3; ++gpu) {
      for (uint32_t number = 0; number < 8; ++number) {
        if (random() % 3 == 0) continue;
        free.push_back(Id(gpu, number));
        ++room[gpu];
      }
    }
    std::shuffle(free.begin(), free.end(), random);
    const size_t size = 1 + random() % 8;
    const Packing packing = random() % 2 == 0 ? Packing::kPack : Packing::kSpread;
    const auto chosen = PreferredIds(ids_, free, {}, size, {packing});
    const size_t most = *std::max_element(room.begin(), room.end());
    ASSERT_EQ(chosen.ok(), most >= size);
    if (!chosen.ok()) continue;
    const std::set<std::string> all(free.begin(), free.end());
    ASSERT_EQ(chosen->size(), size);
    for (const std::string& id : *chosen) ASSERT_TRUE(all.contains(id));
    const uint32_t gpu = *GpuOf(ids_, *chosen);
    for (const size_t other : room) {
      if (other < size) continue;
      ASSERT_TRUE(packing == Packing::kPack ? room[gpu] <= other : room[gpu] >= other);
    }
  }
}

}  // namespace
}  // namespace sluice::deviceplugin
