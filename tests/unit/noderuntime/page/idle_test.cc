// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/idle.h"

#include <gtest/gtest.h>

namespace sluice::page {
namespace {

TEST(IdleWatch, IsOverOnlyAfterNeitherDaemonNorViewerForLongEnough) {
  IdleWatch idle(60, 100);
  EXPECT_FALSE(idle.Over(159, false, false));
  EXPECT_FALSE(idle.Over(160, true, false)) << "a daemon";
  EXPECT_FALSE(idle.Over(219, false, false));
  EXPECT_FALSE(idle.Over(219, false, true)) << "a viewer";
  EXPECT_FALSE(idle.Over(278, false, false));
  EXPECT_TRUE(idle.Over(279, false, false));
}

TEST(IdleWatch, NeverWithoutALimit) {
  IdleWatch idle(0, 0);
  EXPECT_FALSE(idle.Over(1u << 30, false, false));
}

}  // namespace
}  // namespace sluice::page
