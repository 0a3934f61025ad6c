// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/digits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "examples/train/embedded.h"

namespace train {
namespace {

TEST(DigitsTest, BuiltInCopyIsComplete) {
  Digits digits;
  std::string error;
  ASSERT_TRUE(ParseDigits(kDigitsText, &digits, &error)) << error;
  EXPECT_EQ(digits.samples(), 1797);
  EXPECT_EQ(digits.images.size(), 1797u * 64u);
  EXPECT_EQ(*std::max_element(digits.images.begin(), digits.images.end()), 16);
  // The data set's description says how many of each there are.
  const int counts[] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  for (int digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(std::count(digits.labels.begin(), digits.labels.end(), digit), counts[digit]);
  }
}

TEST(DigitsTest, NamesTheBadLine) {
  const std::string good = std::string(64, 'g') + " 3\n";
  Digits digits;
  std::string error;
  ASSERT_TRUE(ParseDigits(good + good, &digits, &error));
  EXPECT_EQ(digits.samples(), 2);
  for (const std::string& bad : {std::string(64, 'h') + " 3\n", std::string(63, '0') + " 3\n",
                                 std::string(64, '0') + " x\n", std::string("\n")}) {
    EXPECT_FALSE(ParseDigits(good + bad, &digits, &error));
    EXPECT_NE(error.find("line 2"), std::string::npos);
  }
  EXPECT_FALSE(ParseDigits("", &digits, &error));
  EXPECT_EQ(error, "no images");
}

}  // namespace
}  // namespace train
