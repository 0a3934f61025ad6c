// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/trainer_output.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(CompareLosses, OneBitOfDifferenceIsADifference) {
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1.8p+0"}, {"0x1p+0", "0x1.8p+0"}), "");
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1.800002p+0"}, {"0x1p+0", "0x1.8p+0"}),
            "iteration 1: 0x1.8p+0 instead of 0x1.800002p+0");
}

TEST(CompareLosses, AShorterSequenceIsADifference) {
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1p+0"}, {"0x1p+0"}), "1 losses instead of 2");
  EXPECT_EQ(CompareLosses({"0x1p+0"}, {}), "0 losses instead of 1");
}

}  // namespace
}  // namespace sluice::cli
