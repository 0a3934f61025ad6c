// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/outside/copy_bytes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(BoxBytes, ArePlanesTimesRowsTimesWidth) {
  CUDA_MEMCPY2D_v2 plane{};
  plane.WidthInBytes = 10;
  plane.Height = 3;
  EXPECT_EQ(BoxBytes(&plane), 30u);
  CUDA_MEMCPY3D_v2 box{};
  box.WidthInBytes = 10;
  box.Height = 3;
  box.Depth = 2;
  EXPECT_EQ(BoxBytes(&box), 60u);
  CUDA_MEMCPY3D_PEER peer{};
  peer.WidthInBytes = 10;
  peer.Height = 3;
  EXPECT_EQ(BoxBytes(&peer), 0u);
  peer.Depth = 1;
  EXPECT_EQ(BoxBytes(&peer), 30u);
}

TEST(BoxBytes, NonsenseIsTheDriversToRefuse) {
  EXPECT_EQ(BoxBytes(static_cast<const CUDA_MEMCPY2D_v2*>(nullptr)), 0u);
  EXPECT_EQ(BoxBytes(static_cast<const CUDA_MEMCPY3D_v2*>(nullptr)), 0u);
  EXPECT_EQ(BoxBytes(static_cast<const CUDA_MEMCPY3D_PEER*>(nullptr)), 0u);
  EXPECT_EQ(BoxBytes(uint64_t{1} << 40, uint64_t{1} << 40, 1), 0u);
}

}  // namespace
}  // namespace sluice
