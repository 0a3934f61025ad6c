// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <numeric>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

CUDA_ARRAY3D_DESCRIPTOR_v2 Shape(size_t width, size_t height, size_t depth, unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
}

class Array : public ContextTest {
 protected:
  CUarray Create(const CUDA_ARRAY3D_DESCRIPTOR_v2& shape) {
    CUarray array = nullptr;
    EXPECT_CU(cuArray3DCreate_v2(&array, &shape));
    return array;
  }
  CUresult TryCreate(const CUDA_ARRAY3D_DESCRIPTOR_v2& shape) {
    CUarray array = nullptr;
    return cuArray3DCreate_v2(&array, &shape);
  }
};

TEST_F(Array, CostsItsElementsAndGivesThemBack) {
  const size_t before = FreeBytes();
  const CUDA_ARRAY_DESCRIPTOR_v2 plane{512, 256, CU_AD_FORMAT_FLOAT, 4};
  CUarray array = nullptr;
  ASSERT_CU(cuArrayCreate_v2(&array, &plane));
  EXPECT_EQ(FreeBytes(), before - 2 * kMiB);
  EXPECT_EQ(CountedBytes("array"), (Counted{2 * kMiB, 2 * kMiB}));
  EXPECT_EQ(CountedBytes("sync"), (Counted{0, 0}));
  CUDA_ARRAY_DESCRIPTOR_v2 flat{};
  ASSERT_CU(cuArrayGetDescriptor_v2(&flat, array));
  EXPECT_EQ(flat.Width, 512u);
  EXPECT_EQ(flat.Height, 256u);
  EXPECT_EQ(flat.Format, CU_AD_FORMAT_FLOAT);
  EXPECT_EQ(flat.NumChannels, 4u);
  ASSERT_CU(cuArrayDestroy(array));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayGetDescriptor_v2(&flat, array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CountedBytes("array"), (Counted{0, 0}));
}

TEST_F(Array, IsRefusedWhenTheGpuIsFull) {
  OnlySimulated("it fills a GPU whose size it knows");
  EXPECT_EQ(TryCreate(Shape(4096, 4096, 2)), CUDA_ERROR_OUT_OF_MEMORY);
  CUmipmappedArray levels = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 large = Shape(4096, 4096, 0);
  EXPECT_EQ(cuMipmappedArrayCreate(&levels, &large, 13), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CountedBytes("array"), (Counted{0, 0}));
}

TEST_F(Array, ShapesFollowTheHeader) {
  for (const auto& [shape, allowed] : std::vector<std::pair<CUDA_ARRAY3D_DESCRIPTOR_v2, bool>>{
           {Shape(16, 0, 0), true},
           {Shape(0, 0, 0), false},
           {Shape(16, 0, 4), false},
           {Shape(16, 0, 4, CUDA_ARRAY3D_LAYERED), true},
           {Shape(16, 8, 0, CUDA_ARRAY3D_LAYERED), false},
           {Shape(16, 16, 6, CUDA_ARRAY3D_CUBEMAP), true},
           {Shape(16, 16, 5, CUDA_ARRAY3D_CUBEMAP), false},
           {Shape(16, 8, 6, CUDA_ARRAY3D_CUBEMAP), false},
           {Shape(16, 16, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED), true},
           {Shape(16, 16, 0, CUDA_ARRAY3D_TEXTURE_GATHER), true},
           {Shape(16, 16, 4, CUDA_ARRAY3D_TEXTURE_GATHER), false},
           {Shape(16, 16, 4, 0x8000), false}}) {
    CUarray array = nullptr;
    EXPECT_EQ(cuArray3DCreate_v2(&array, &shape), allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
        << shape.Width << " " << shape.Height << " " << shape.Depth << " " << shape.Flags;
    if (array == nullptr) continue;
    EXPECT_CU(cuArrayDestroy(array));
  }
  CUDA_ARRAY3D_DESCRIPTOR_v2 odd = Shape(16, 0, 0);
  odd.NumChannels = 3;
  EXPECT_EQ(TryCreate(odd), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArray3DCreate_v2(nullptr, &odd), CUDA_ERROR_INVALID_VALUE);
  const CUarray array = Create(Shape(16, 0, 0));
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  EXPECT_EQ(cuArrayGetMemoryRequirements(&needs, array, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuArrayDestroy(array));
}

TEST_F(Array, SparseOnesAreNotSimulated) {
  OnlySimulated("a real driver has them");
  EXPECT_EQ(TryCreate(Shape(16, 16, 0, CUDA_ARRAY3D_SPARSE)), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Array, CopiesGoInAndOut) {
  constexpr size_t kWidth = 40;
  constexpr size_t kHeight = 6;
  const CUarray array = Create(Shape(kWidth, kHeight, 0));
  std::vector<uint32_t> in(kWidth * kHeight);
  std::iota(in.begin(), in.end(), 1u);
  CUDA_MEMCPY2D_v2 copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = kWidth * 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = kWidth * 4;
  copy.Height = kHeight;
  ASSERT_CU(cuMemcpy2D_v2(&copy));
  // A window of it into linear memory with another pitch.
  const CUdeviceptr linear = Alloc(1024);
  ASSERT_CU(cuMemsetD8_v2(linear, 0, 1024));
  CUDA_MEMCPY2D_v2 window{};
  window.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  window.srcArray = array;
  window.srcXInBytes = 8;
  window.srcY = 2;
  window.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  window.dstDevice = linear;
  window.dstPitch = 128;
  window.dstXInBytes = 4;
  window.WidthInBytes = 12;
  window.Height = 3;
  ASSERT_CU(cuMemcpy2DAsync_v2(&window, nullptr));
  for (uint32_t row = 0; row < 3; ++row) {
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(Read32(linear + 128 * row + 4 + 4 * i), in[(row + 2) * kWidth + 2 + i]);
    }
  }
  EXPECT_EQ(Read32(linear), 0u);
  EXPECT_EQ(Read32(linear + 16), 0u);
  std::vector<uint32_t> out(kWidth);
  ASSERT_CU(cuMemcpyAtoH_v2(out.data(), array, 0, kWidth * 4));
  EXPECT_EQ(out[kWidth - 1], kWidth);
  ASSERT_CU(cuMemFree_v2(linear));
  ASSERT_CU(cuArrayDestroy(array));
}

TEST_F(Array, CopiesOutsideOfItAreRefused) {
  OnlySimulated(
      "a real driver copies rows that are not there, and reads what a stale handle points to");
  const CUarray array = Create(Shape(40, 6, 0));
  const CUdeviceptr linear = Alloc(1024);
  CUDA_MEMCPY2D_v2 window{};
  window.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  window.srcArray = array;
  window.srcY = 4;
  window.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  window.dstDevice = linear;
  window.dstPitch = 128;
  window.WidthInBytes = 12;
  window.Height = 3;
  EXPECT_EQ(cuMemcpy2D_v2(&window), CUDA_ERROR_INVALID_VALUE);
  window.srcY = 0;
  window.srcXInBytes = 2;  // not whole elements
  EXPECT_EQ(cuMemcpy2D_v2(&window), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuArrayDestroy(array));
  EXPECT_EQ(cuMemcpy2D_v2(&window), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Array, ThreeDimensionsKeepTheirLayers) {
  const CUarray array = Create(Shape(8, 4, 3));
  std::vector<uint32_t> in(8 * 4 * 3);
  std::iota(in.begin(), in.end(), 100u);
  CUDA_MEMCPY3D_v2 copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 32;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 32;
  copy.Height = 4;
  copy.Depth = 3;
  ASSERT_CU(cuMemcpy3D_v2(&copy));
  std::vector<uint32_t> out(2 * 2 * 2);
  CUDA_MEMCPY3D_v2 back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.srcXInBytes = 4;
  back.srcY = 1;
  back.srcZ = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out.data();
  back.dstPitch = 8;
  back.dstHeight = 2;
  back.WidthInBytes = 8;
  back.Height = 2;
  back.Depth = 2;
  ASSERT_CU(cuMemcpy3DAsync_v2(&back, nullptr));
  size_t i = 0;
  for (size_t z = 1; z < 3; ++z) {
    for (size_t y = 1; y < 3; ++y) {
      for (size_t x = 1; x < 3; ++x) EXPECT_EQ(out[i++], in[(z * 4 + y) * 8 + x]);
    }
  }
  back.srcZ = 2;
  EXPECT_EQ(cuMemcpy3D_v2(&back), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuArrayDestroy(array));
}

TEST_F(Array, LevelsAreArraysOfTheWhole) {
  CUmipmappedArray whole = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(64, 16, 0);
  ASSERT_CU(cuMipmappedArrayCreate(&whole, &shape, 99));
  for (unsigned level = 0; level < 7; ++level) {
    CUarray array = nullptr;
    ASSERT_CU(cuMipmappedArrayGetLevel(&array, whole, level));
    CUDA_ARRAY3D_DESCRIPTOR_v2 described{};
    ASSERT_CU(cuArray3DGetDescriptor_v2(&described, array));
    EXPECT_EQ(described.Width, 64u >> level);
    EXPECT_EQ(described.Height, std::max(16u >> level, 1u));
    EXPECT_EQ(described.Depth, 0u);
    // Each one keeps what is written to it.
    const std::vector<uint32_t> row(described.Width, level + 1);
    ASSERT_CU(cuMemcpyHtoA_v2(array, 0, row.data(), row.size() * 4));
  }
  for (unsigned level = 0; level < 7; ++level) {
    CUarray array = nullptr;
    ASSERT_CU(cuMipmappedArrayGetLevel(&array, whole, level));
    uint32_t first = 0;
    ASSERT_CU(cuMemcpyAtoH_v2(&first, array, 0, 4));
    EXPECT_EQ(first, level + 1);
  }
  CUarray none = nullptr;
  EXPECT_EQ(cuMipmappedArrayGetLevel(&none, whole, 7), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMipmappedArrayDestroy(whole));
}

TEST_F(Array, LevelsGoWithTheWhole) {
  OnlySimulated(
      "a real driver destroys a level by itself, and reads what a stale handle points to");
  const size_t before = FreeBytes();
  CUmipmappedArray whole = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = Shape(64, 16, 0);
  ASSERT_CU(cuMipmappedArrayCreate(&whole, &shape, 2));
  EXPECT_EQ(CountedBytes("array").requested, size_t{4} * (64 * 16 + 32 * 8));
  CUarray array = nullptr;
  ASSERT_CU(cuMipmappedArrayGetLevel(&array, whole, 1));
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(cuMipmappedArrayDestroy(whole));
  EXPECT_EQ(cuMipmappedArrayDestroy(whole), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Array, DestroyingWaitsForTheGpu) {
  const CUarray array = Create(Shape(256, 0, 0));
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(Launch("slow", {}, stream));
  const std::vector<uint32_t> row(256, 1);
  ASSERT_CU(cuMemcpyHtoAAsync_v2(array, 0, row.data(), 1024, stream));
  ASSERT_CU(cuArrayDestroy(array));
  EXPECT_CU(cuStreamQuery(stream));
}

TEST_F(Array, GoesWithItsContext) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  const CUarray array = Create(Shape(256, 256, 0));
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(CountedBytes("array"), (Counted{0, 0}));
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

}  // namespace
}  // namespace sluice::contract
