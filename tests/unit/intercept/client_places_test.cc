// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <utility>
#include <vector>

#include "tests/unit/intercept/launch_fixture.h"

namespace sluice::test {
namespace {

using protocol::TroughPlace;

// As gradients are: allocated while the pass backward frees what the one forward left, freed when
// the next iteration begins. Wherever one lies at the trough its unit is held there; by itself it
// would lie in the tightest place that there is.
TEST_F(ClientLaunch, WhatOutlivesTheIterationLiesTogetherAtTheTrough) {
  driver.immediate = true;
  std::vector<CUdeviceptr> kept;
  AllocAsync(kUnit);
  Publish(TroughPlace::kAfterLast, 1);
  daemon->daemon->flags = protocol::kPressure;
  std::vector<uint32_t> held;
  for (uint32_t iteration = 0; iteration < 4; ++iteration) {
    for (const CUdeviceptr one : std::exchange(kept, {})) {
      EXPECT_EQ(client->FreeAsync(one, FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
    std::vector<CUdeviceptr> forward;
    for (int i = 0; i < 4; ++i) {
      forward.push_back(AllocAsync(kUnit / 8));
      forward.push_back(AllocAsync(kUnit - kUnit / 8));
    }
    forward.push_back(AllocAsync(kUnit));
    Launches(0, 4);
    for (const size_t i : {8u, 0u, 2u, 4u, 6u, 1u, 3u, 5u, 7u}) {
      EXPECT_EQ(client->FreeAsync(forward[i], FakeDriver::Stream(1)), CUDA_SUCCESS);
      if (i % 2 == 0 && i < 8) kept.push_back(AllocAsync(kUnit / 8 - kGranuleBytes));
    }
    Launches(4, kPeriod);
    held.push_back(Gates(iteration + 1).back().held_units);
  }
  // The cycle is known behind the first iteration, and who outlives the second in the third.
  EXPECT_GE(held[1], 4u);
  EXPECT_LE(held[2], 2u);
  EXPECT_EQ(held[3], held[2]);
}

// Of two places with room, the large one first: in which of them is a small block behind a trough?
TEST_F(ClientLaunch, OnlyWhoGaveBackTakesTheTightestPlace) {
  driver.immediate = true;
  AllocAsync(kUnit);
  Publish(TroughPlace::kAfterLast, 1);
  uint32_t troughs = 0;
  for (const bool gives_back : {false, true, false}) {
    daemon->daemon->flags = gives_back ? uint32_t{protocol::kPressure} : 0;
    Iteration();
    Iteration();
    Gates(troughs += 2);
    const CUdeviceptr large = AllocAsync(kUnit / 2);
    const CUdeviceptr between = AllocAsync(kUnit / 4);
    const CUdeviceptr tight = AllocAsync(kUnit / 8);
    const CUdeviceptr behind = AllocAsync(kUnit / 8);
    ASSERT_TRUE(large < between && between < tight && tight < behind);
    for (const CUdeviceptr one : {large, tight}) {
      EXPECT_EQ(client->FreeAsync(one, FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
    // More than what is set aside for the next one of its size.
    const CUdeviceptr small = AllocAsync(kUnit / 8 - kGranuleBytes);
    EXPECT_EQ(small, gives_back ? tight : large);
    for (const CUdeviceptr one : {small, between, behind}) {
      EXPECT_EQ(client->FreeAsync(one, FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
  }
}

}  // namespace
}  // namespace sluice::test
