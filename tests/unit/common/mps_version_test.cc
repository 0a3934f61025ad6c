// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/mps_version.h"

#include <gtest/gtest.h>

#include "common/mps_folder.h"

namespace sluice {
namespace {

const std::string kDir(kDefaultMpsDir);

TEST(MpsVersion, AutoFollowsTheDriver) {
  EXPECT_TRUE(*MpsV3Wanted(MpsChoice::kAuto, "615.21.04", kDir));
  EXPECT_TRUE(*MpsV3Wanted(MpsChoice::kAuto, "620.1", kDir));
  EXPECT_FALSE(*MpsV3Wanted(MpsChoice::kAuto, "610.99", kDir));
  EXPECT_FALSE(*MpsV3Wanted(MpsChoice::kAuto, "", kDir));
}

TEST(MpsVersion, LegacyCanBeHadOnEveryDriver) {
  EXPECT_FALSE(*MpsV3Wanted(MpsChoice::kLegacy, "615.21.04", kDir));
  EXPECT_FALSE(*MpsV3Wanted(MpsChoice::kLegacy, "", kDir));
}

TEST(MpsVersion, ThePathOfASocketMustFit) {
  const std::string longest = "/" + std::string(kMaxMpsV3Dir - 1, 'm');
  EXPECT_TRUE(*MpsV3Wanted(MpsChoice::kV3, "615.1", longest));
  EXPECT_FALSE(*MpsV3Wanted(MpsChoice::kAuto, "615.1", longest + "m"));
  EXPECT_EQ(
      MpsV3Wanted(MpsChoice::kV3, "615.1", longest + "m").status().message(),
      "--mps-version 3: --mps-dir has 34 characters; allowed: 3 with a driver from 615 and an "
      "--mps-dir of at most 33 characters, or auto, legacy");
  const std::string gpu = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  EXPECT_EQ((MpsPipeFolder(longest, gpu) + "/s9999/j999999/control_privileged").size(), 107u);
}

TEST(MpsVersion, AnOlderDriverIsNamedWhereItMustBe3) {
  EXPECT_EQ(MpsV3Wanted(MpsChoice::kV3, "580.65.06", kDir).status().message(),
            "--mps-version 3: the driver is 580.65.06; allowed: 3 with a driver from 615 and an "
            "--mps-dir of at most 33 characters, or auto, legacy");
}

TEST(MpsVersion, WhatIsAllowedIsSaid) {
  EXPECT_EQ(*ParseMpsChoice("auto"), MpsChoice::kAuto);
  EXPECT_EQ(*ParseMpsChoice("legacy"), MpsChoice::kLegacy);
  EXPECT_EQ(*ParseMpsChoice("3"), MpsChoice::kV3);
  EXPECT_EQ(ParseMpsChoice("2").status().message(), "--mps-version '2': allowed: auto, legacy, 3");
}

}  // namespace
}  // namespace sluice
