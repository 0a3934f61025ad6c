// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/driver_limit.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

TEST(DriverLimit, AutoFollowsTheDriverAndTheNode) {
  const auto wanted = [](const char* version, bool cgroup2) {
    return *DriverLimitWanted(DriverLimitMode::kAuto, version, cgroup2);
  };
  EXPECT_TRUE(wanted("615.01", true));
  EXPECT_TRUE(wanted("620.3.1", true));
  EXPECT_FALSE(wanted("614.99", true));
  EXPECT_FALSE(wanted("580.65.06", true));
  EXPECT_FALSE(wanted("", true));
  // The runtime's hook would keep every container from starting.
  EXPECT_FALSE(wanted("615.01", false));
}

TEST(DriverLimit, OffIsOffAndOnIsOnOrAnError) {
  EXPECT_FALSE(*DriverLimitWanted(DriverLimitMode::kOff, "615.01", true));
  EXPECT_TRUE(*DriverLimitWanted(DriverLimitMode::kOn, "615.01", true));
  const auto fault = [](const char* version, bool cgroup2) {
    const Result<bool> wanted = DriverLimitWanted(DriverLimitMode::kOn, version, cgroup2);
    EXPECT_FALSE(wanted.ok());
    return wanted.status().message();
  };
  constexpr char kAllowed[] =
      "; allowed: on with a driver from 615 and control groups of version 2, or auto, off";
  EXPECT_EQ(fault("580.65.06", true),
            std::string("--driver-limit on: the driver is 580.65.06") + kAllowed);
  EXPECT_EQ(fault("", true),
            std::string("--driver-limit on: the driver is of no version") + kAllowed);
  EXPECT_EQ(fault("615.01", false),
            std::string("--driver-limit on: this node has control groups of version 1") + kAllowed);
}

TEST(DriverLimit, IsNeverBelowWhatAContainerMayComeToHave) {
  const std::vector<Nvml::Gpu> gpus = {{"GPU-a", "", 80 * kGiB}, {"GPU-b", "", 8 * kGiB + 1}};
  const std::vector<Gpu> shared = {{"GPU-b", 7 * kGiB}, {"GPU-a", 78 * kGiB}};
  // The pool that it has mapped, all of it, and the reserve.
  EXPECT_EQ(DriverLimitsMiB(gpus, shared, DriverCharges::kMapped),
            (std::map<std::string, uint64_t>{{"GPU-a", 80 * 1024}, {"GPU-b", 8 * 1024 + 1}}));
  // The reserve alone; a part of a MiB is a whole one.
  EXPECT_EQ(DriverLimitsMiB(gpus, shared, DriverCharges::kMade),
            (std::map<std::string, uint64_t>{{"GPU-a", 2 * 1024}, {"GPU-b", 1024 + 1}}));
}

TEST(DriverLimit, AGpuThatIsNotSharedHasNone) {
  EXPECT_TRUE(DriverLimitsMiB({{"GPU-a", "", kGiB}}, {}, DriverCharges::kMapped).empty());
}

}  // namespace
}  // namespace sluice::deviceplugin
