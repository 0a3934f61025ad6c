// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/format.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(Format, TakesTextsOfAnyLength) {
  EXPECT_EQ(Format("%d %s", 7, "x"), "7 x");
  EXPECT_EQ(Format("%s", ""), "");
  const std::string large(10000, 'a');
  EXPECT_EQ(Format("%s|", large.c_str()), large + "|");
}

}  // namespace
}  // namespace sluice::cli
