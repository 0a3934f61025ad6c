// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/node_offer.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

std::vector<Nvml::Gpu> Eight(uint64_t bytes) {
  std::vector<Nvml::Gpu> gpus;
  for (uint32_t i = 0; i < 8; ++i) gpus.push_back({"GPU-" + std::to_string(i), "large", bytes, i});
  return gpus;
}
/// Of eight, of which this one does not answer.
Nvml::Listed Without(uint32_t silent) {
  Nvml::Listed listed = {8, Eight(kGiB), {{silent, "lost"}}};
  listed.gpus.erase(listed.gpus.begin() + silent);
  return listed;
}

TEST(NodeOffer, TheLargestNodeStaysBelowTheBound) {
  const Result<DeviceIds> ids = IdsOfNode(Eight(288 * kGiB), 0, std::nullopt);
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  EXPECT_EQ(ids->granule_bytes(), kGiB);
  EXPECT_EQ(ids->all().size(), 8u * 286);
  for (const std::string& id : ids->all()) EXPECT_LT(id.size(), 24u);
}

TEST(NodeOffer, AReserveIsKept) {
  const Result<DeviceIds> ids = IdsOfNode({{"GPU-a", "small", 8 * kGiB}}, 0, 4 * kGiB);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->gpus().front().bytes, 4 * kGiB);
  EXPECT_EQ(IdsOfNode({{"GPU-a", "small", 8 * kGiB}}, 0, std::nullopt)->gpus().front().bytes,
            7 * kGiB);
}

TEST(NodeOffer, AReserveThatLeavesNothingIsNamed) {
  const Result<DeviceIds> ids = IdsOfNode({{"GPU-a", "small", 8 * kGiB}}, 0, 8 * kGiB);
  EXPECT_EQ(ids.status().message(),
            "--reserve 8.0 GiB: allowed: less than 8.0 GiB, which GPU-a has");
}

TEST(NodeOffer, OnlyTheGpusThatAreMeant) {
  EXPECT_EQ(GpusMeant({8, Eight(kGiB), {}}, std::nullopt)->size(), 8u);
  const auto meant = GpusMeant({8, Eight(kGiB), {}}, GpuNumbers({1, 7}));
  ASSERT_TRUE(meant.ok());
  ASSERT_EQ(meant->size(), 2u);
  EXPECT_EQ(meant->at(0).uuid, "GPU-1");
  EXPECT_EQ(meant->at(1).uuid, "GPU-7");
  EXPECT_EQ(GpusMeant({8, Eight(kGiB), {}}, GpuNumbers({0, 8})).status().message(),
            "--gpus 8: allowed: numbers below 8, which is how many GPUs this node has");
}

TEST(NodeOffer, AGpuThatDoesNotAnswerMovesNoOthersNumber) {
  EXPECT_EQ(GpusMeant(Without(3), std::nullopt)->size(), 7u);
  const auto meant = GpusMeant(Without(3), GpuNumbers(std::vector<uint32_t>{3, 4}));
  ASSERT_TRUE(meant.ok()) << meant.status().message();
  ASSERT_EQ(meant->size(), 1u);
  EXPECT_EQ(meant->front().uuid, "GPU-4");
  EXPECT_TRUE(GpusMeant(Without(3), GpuNumbers(std::vector<uint32_t>{7})).ok());
  EXPECT_EQ(GpusMeant(Without(3), GpuNumbers(std::vector<uint32_t>{3})).status().message(),
            "--gpus: none of these GPUs answers");
}

TEST(NodeOffer, ANodeWithoutAGpuSaysSo) { EXPECT_FALSE(IdsOfNode({}, 0, std::nullopt).ok()); }

}  // namespace
}  // namespace sluice::deviceplugin
