// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

namespace sluice::hooks {
namespace {

class ArrayHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
  }
  /// One-byte elements: `bytes` of them in rows of 4 KiB.
  static CUDA_ARRAY3D_DESCRIPTOR_v2 Shape(size_t bytes) {
    CUDA_ARRAY3D_DESCRIPTOR_v2 shape{};
    shape.Width = 4096;
    shape.Height = bytes / 4096;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1;
    return shape;
  }
  void ExpectArrays(uint64_t bytes) {
    ExpectSoon([this] { return Outside("array"); }, bytes);
  }
};

TEST_F(ArrayHook, cuArrayCreate) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v1 shape{4096, kMoreThanLimit / 4096, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  EXPECT_EQ(cuArrayCreate(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
  shape.Height = kMiB / 4096;
  ASSERT_CU(cuArrayCreate(&array, &shape));
  ExpectArrays(kMiB);
  ASSERT_CU(cuArrayDestroy(array));
  ExpectArrays(0);
}

TEST_F(ArrayHook, cuArray3DCreate) {
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_v1 shape{
      4096, kMoreThanLimit / 4096 / 2, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  EXPECT_EQ(cuArray3DCreate(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
  shape.Height = kMiB / 4096 / 2;
  ASSERT_CU(cuArray3DCreate(&array, &shape));
  ExpectArrays(kMiB);
}

TEST_F(ArrayHook, cuArrayCreate_v2) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v2 shape{};
  shape.Width = 4096;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 1;
  shape.Height = kMoreThanLimit / 4096;
  EXPECT_EQ(cuArrayCreate_v2(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
  shape.Height = kMiB / 4096;
  ASSERT_CU(cuArrayCreate_v2(&array, &shape));
  ExpectArrays(kMiB);
}

TEST_F(ArrayHook, cuArray3DCreate_v2) {
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(kMoreThanLimit);
  EXPECT_EQ(cuArray3DCreate_v2(&array, &shape), CUDA_ERROR_OUT_OF_MEMORY);
  shape = Shape(kMiB);
  ASSERT_CU(cuArray3DCreate_v2(&array, &shape));
  ExpectArrays(kMiB);
}

TEST_F(ArrayHook, cuMipmappedArrayCreate) {
  CUmipmappedArray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(kMoreThanLimit);
  EXPECT_EQ(cuMipmappedArrayCreate(&array, &shape, 1), CUDA_ERROR_OUT_OF_MEMORY);
  shape = Shape(kMiB);
  ASSERT_CU(cuMipmappedArrayCreate(&array, &shape, 2));
  ExpectArrays(kMiB + kMiB / 4);
}

TEST_F(ArrayHook, cuArrayDestroy) {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(kMiB);
  ASSERT_CU(cuArray3DCreate_v2(&array, &shape));
  ASSERT_CU(cuArrayDestroy(array));
  ExpectArrays(0);
}

TEST_F(ArrayHook, cuMipmappedArrayDestroy) {
  CUmipmappedArray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(kMiB);
  ASSERT_CU(cuMipmappedArrayCreate(&array, &shape, 2));
  ASSERT_CU(cuMipmappedArrayDestroy(array));
  ExpectArrays(0);
}

}  // namespace
}  // namespace sluice::hooks
