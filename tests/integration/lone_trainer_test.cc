// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/support/trainer_crowd.h"

namespace sluice::testing {
namespace {

// A job that is alone gives nothing back, and in what it holds its blocks lie where each iteration
// before left room for them. Little more than its peak has to do for as long as it runs.
TEST(LoneTrainer, GoesOnInLittleMoreThanItsPeak) {
  const TrainerCrowd crowd({{{"small-a", 1, 150, {}}}}, 1.1);
  crowd.Share("flow");
}

}  // namespace
}  // namespace sluice::testing
