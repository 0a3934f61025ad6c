// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/text_columns.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(AlignColumns, NumbersStandToTheRightAndNoLineEndsInBlanks) {
  EXPECT_EQ(AlignColumns({{"A", "N", "LAST"}, {"long", "100", ""}}, 2, 1, 1),
            "  A       N  LAST\n  long  100\n");
}

TEST(AlignColumns, NoRowsAreNoText) { EXPECT_EQ(AlignColumns({}, 0, 0, 0), ""); }

}  // namespace
}  // namespace sluice::cli
