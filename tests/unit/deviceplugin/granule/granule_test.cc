// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/granule.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

std::vector<Gpu> Gpus(size_t count, uint64_t bytes) {
  std::vector<Gpu> gpus;
  for (size_t i = 0; i < count; ++i) gpus.push_back({"GPU-" + std::to_string(i), bytes});
  return gpus;
}

uint32_t Ids(const std::vector<Gpu>& gpus, uint64_t granule) {
  uint32_t ids = 0;
  for (const Gpu& gpu : gpus) ids += GranulesOf(gpu, granule);
  return ids;
}

TEST(Granule, FollowsFromTheNode) {
  struct Case {
    std::vector<Gpu> gpus;
    uint64_t granule;
  };
  const Case cases[] = {
      {Gpus(1, 80 * kGiB), kGiB},       {Gpus(8, 288 * kGiB), kGiB},  // 2,304 ids
      {Gpus(16, 288 * kGiB), 2 * kGiB},                               // 4,608 would be too many
      {Gpus(1, 11 * kGiB), kGiB / 2},                                 // at least 16
      {Gpus(1, 64 * kMiB), 4 * kMiB},   {Gpus(1, kMiB), kMiB},
  };
  for (const Case& one : cases) {
    const Result<uint64_t> granule = GranuleBytes(one.gpus);
    ASSERT_TRUE(granule.ok()) << granule.status().message();
    EXPECT_EQ(*granule, one.granule) << one.gpus.size() << " x " << one.gpus[0].bytes;
    EXPECT_LE(Ids(one.gpus, *granule), kMaxIds);
  }
}

/// The smallest GPU says how fine it is, all together say how coarse.
TEST(Granule, OfDifferentGpus) {
  const std::vector<Gpu> gpus = {{"a", 80 * kGiB}, {"b", 12 * kGiB}};
  EXPECT_EQ(*GranuleBytes(gpus), kGiB / 2);
  std::vector<Gpu> many = Gpus(15, 288 * kGiB);
  many.push_back({"small", 10 * kGiB});
  EXPECT_EQ(*GranuleBytes(many), 2 * kGiB) << "few of the small one, or too many ids";
}

TEST(Granule, AsItIsWanted) {
  EXPECT_EQ(*GranuleBytes(Gpus(8, 288 * kGiB), 768 * kMiB), 768 * kMiB);
  for (const uint64_t wrong : {kMiB + 1, 289 * kGiB, 512 * kMiB}) {
    const Result<uint64_t> granule = GranuleBytes(Gpus(8, 288 * kGiB), wrong);
    ASSERT_FALSE(granule.ok()) << wrong;
    EXPECT_EQ(granule.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(granule.status().message().find(
                  "allowed: whole MiB, 1.0 GiB (at most 4096 device ids) to 288.0 GiB"),
              std::string::npos)
        << granule.status().message();
  }
}

TEST(Granule, OfNothing) {
  EXPECT_NE(GranuleBytes({}).status().message().find("granule: the node has no GPU"),
            std::string::npos);
  EXPECT_NE(GranuleBytes(Gpus(1, kMiB - 1)).status().message().find("GPU-0"), std::string::npos);
}

}  // namespace
}  // namespace sluice::deviceplugin
