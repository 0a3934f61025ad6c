// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/device_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

std::vector<Gpu> LargeNode() {
  std::vector<Gpu> gpus;
  for (int i = 0; i < 8; ++i) {
    gpus.push_back(
        {"GPU-5c1d7a3" + std::to_string(i) + "-0b7e-11f0-9d3f-0242ac120002", 288 * kGiB});
  }
  return gpus;
}

TEST(DeviceIds, AreFewShortAndDifferent) {
  const Result<DeviceIds> ids = DeviceIds::Make(LargeNode(), kGiB);
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  EXPECT_EQ(ids->all().size(), 2304u);
  EXPECT_EQ(std::set<std::string>(ids->all().begin(), ids->all().end()).size(), 2304u);
  for (const std::string& id : ids->all()) {
    ASSERT_LT(id.size(), 13u) << id;
    const auto place = ids->Find(id);
    ASSERT_TRUE(place);
    ASSERT_EQ(ids->IdOf(*place), id);
  }
  EXPECT_EQ(ids->Find("5c1d7a30-zz"), std::nullopt);
  EXPECT_EQ(ids->Find(""), std::nullopt);
}

/// A GPU that is listed elsewhere, or beside fewer others, keeps its ids: pods hold them.
TEST(DeviceIds, StayTheSame) {
  std::vector<Gpu> gpus = LargeNode();
  const DeviceIds before = *DeviceIds::Make(gpus, kGiB);
  std::reverse(gpus.begin(), gpus.end());
  gpus.pop_back();
  const DeviceIds after = *DeviceIds::Make(gpus, kGiB);
  for (const std::string& id : after.all()) {
    const auto now = after.Find(id);
    const auto then = before.Find(id);
    ASSERT_TRUE(now && then) << id;
    ASSERT_EQ(after.gpus()[now->gpu].uuid, before.gpus()[then->gpu].uuid);
    ASSERT_EQ(now->number, then->number);
  }
  // One more granule of a size, the others as they were.
  gpus[0].bytes += kGiB;
  const DeviceIds grown = *DeviceIds::Make(gpus, kGiB);
  for (const std::string& id : after.all()) ASSERT_TRUE(grown.Find(id)) << id;
}

TEST(DeviceIds, OfTwoGpusWithOneName) {
  const Result<DeviceIds> twice = DeviceIds::Make({{"GPU-a", kGiB}, {"GPU-a", kGiB}}, kMiB);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.status().message().find("GPU-a"), std::string::npos);
}

}  // namespace
}  // namespace sluice::deviceplugin
