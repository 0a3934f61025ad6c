// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/outside/array_bytes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

CUDA_ARRAY3D_DESCRIPTOR_v2 Shape(size_t width, size_t height, size_t depth, unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR_v2 d{};
  d.Width = width;
  d.Height = height;
  d.Depth = depth;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 2;
  d.Flags = flags;
  return d;
}

TEST(ArrayBytes, ADimensionOfZeroIsNotThere) {
  EXPECT_EQ(ArrayBytes(Shape(10, 0, 0)), 80u);
  EXPECT_EQ(ArrayBytes(Shape(10, 3, 0)), 240u);
  EXPECT_EQ(ArrayBytes(Shape(10, 3, 2)), 480u);
}

TEST(ArrayBytes, FlatDescriptorsAreTheSame) {
  CUDA_ARRAY_DESCRIPTOR_v2 d{};
  d.Width = 10;
  d.Height = 3;
  d.Format = CU_AD_FORMAT_HALF;
  d.NumChannels = 4;
  EXPECT_EQ(ArrayBytes(d), 240u);
}

TEST(ArrayBytes, LevelsHalveButLayersStay) {
  EXPECT_EQ(ArrayBytes(Shape(8, 4, 0), 4), (32u + 8 + 2 + 1) * 8);
  EXPECT_EQ(ArrayBytes(Shape(4, 4, 4), 2), (64u + 8) * 8);
  EXPECT_EQ(ArrayBytes(Shape(4, 4, 4, CUDA_ARRAY3D_LAYERED), 2), (64u + 16) * 8);
  EXPECT_EQ(ArrayBytes(Shape(4, 4, 6, CUDA_ARRAY3D_CUBEMAP), 2), (96u + 24) * 8);
}

TEST(ArrayBytes, FormatsCountTheirComponents) {
  auto d = Shape(10, 0, 0);
  d.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  EXPECT_EQ(ArrayBytes(d), 20u);
  d.Format = CU_AD_FORMAT_SIGNED_INT16;
  EXPECT_EQ(ArrayBytes(d), 40u);
}

TEST(ArrayBytes, WhatIsMappedLaterCostsNothingNow) {
  EXPECT_EQ(ArrayBytes(Shape(10, 3, 0, CUDA_ARRAY3D_SPARSE)), 0u);
  EXPECT_EQ(ArrayBytes(Shape(10, 3, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)), 0u);
}

TEST(ArrayBytes, NonsenseIsTheDriversToRefuse) {
  EXPECT_EQ(ArrayBytes(Shape(~size_t{0} / 4, ~size_t{0} / 4, 4)), 0u);
}

}  // namespace
}  // namespace sluice
