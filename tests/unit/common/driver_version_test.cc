// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/driver_version.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DriverVersion, TheMajorVersionIsTheFirstNumber) {
  EXPECT_EQ(MajorOfDriver("615.21.04"), 615u);
  EXPECT_EQ(MajorOfDriver("580"), 580u);
  for (const char* text : {"", "R615", "615x", ".615", "-1", "99999999999.1"}) {
    EXPECT_EQ(MajorOfDriver(text), 0u) << text;
  }
}

}  // namespace
}  // namespace sluice
