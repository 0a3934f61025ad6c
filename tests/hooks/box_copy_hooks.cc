// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/copy_fixture.h"

// The copies of other shapes: planes, boxes, arrays, and between contexts.

namespace sluice::hooks {
namespace {

COPY_HOOK_TEST(cuMemcpy, to_, from_, 64)
COPY_HOOK_TEST(cuMemcpy_ptds, to_, from_, 64)
COPY_HOOK_TEST(cuMemcpyAsync, to_, from_, 64, nullptr)
COPY_HOOK_TEST(cuMemcpyAsync_ptsz, to_, from_, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD16_v2, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD16_v2_ptds, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD16Async, to_, 1, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD16Async_ptsz, to_, 1, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD2D8_v2, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D8_v2_ptds, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D8Async, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemsetD2D8Async_ptsz, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemsetD2D16_v2, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D16_v2_ptds, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D16Async, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemsetD2D16Async_ptsz, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemsetD2D32_v2, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D32_v2_ptds, to_, 256, 1, 8, 4)
COPY_HOOK_TEST(cuMemsetD2D32Async, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemsetD2D32Async_ptsz, to_, 256, 1, 8, 4, nullptr)
COPY_HOOK_TEST(cuMemcpyPeer, to_, context_, from_, context_, 64)
COPY_HOOK_TEST(cuMemcpyPeer_ptds, to_, context_, from_, context_, 64)
COPY_HOOK_TEST(cuMemcpyPeerAsync, to_, context_, from_, context_, 64, nullptr)
COPY_HOOK_TEST(cuMemcpyPeerAsync_ptsz, to_, context_, from_, context_, 64, nullptr)

class BoxCopy : public Copy {
 protected:
  void SetUp() override {
    Copy::SetUp();
    Describe(&plane_);
    Describe(&box_);
    Describe(&peer_);
    box_.Depth = peer_.Depth = 1;
    peer_.srcContext = peer_.dstContext = context_;
  }
  template <class Shape>
  void Describe(Shape* shape) {
    shape->srcMemoryType = shape->dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape->srcDevice = from_;
    shape->dstDevice = to_;
    shape->srcPitch = shape->dstPitch = 256;
    shape->WidthInBytes = 64;
    shape->Height = 4;
  }
  CUDA_MEMCPY2D_v2 plane_{};
  CUDA_MEMCPY3D_v2 box_{};
  CUDA_MEMCPY3D_PEER peer_{};
};

COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2D_v2, &plane_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2D_v2_ptds, &plane_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2DUnaligned_v2, &plane_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2DUnaligned_v2_ptds, &plane_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2DAsync_v2, &plane_, nullptr)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy2DAsync_v2_ptsz, &plane_, nullptr)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3D_v2, &box_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3D_v2_ptds, &box_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DAsync_v2, &box_, nullptr)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DAsync_v2_ptsz, &box_, nullptr)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DPeer, &peer_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DPeer_ptds, &peer_)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DPeerAsync, &peer_, nullptr)
COPY_HOOK_TEST_F(BoxCopy, cuMemcpy3DPeerAsync_ptsz, &peer_, nullptr)

class ArrayCopy : public Copy {
 protected:
  void SetUp() override {
    Copy::SetUp();
    CUDA_ARRAY_DESCRIPTOR_v2 shape{};
    shape.Width = 64;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1;
    ASSERT_CU(cuArrayCreate_v2(&array_, &shape));
    ASSERT_CU(cuArrayCreate_v2(&other_, &shape));
  }
  CUarray array_ = nullptr;
  CUarray other_ = nullptr;
};

COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyHtoA_v2, array_, 0, host_, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyHtoA_v2_ptds, array_, 0, host_, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoH_v2, host_, array_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoH_v2_ptds, host_, array_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyDtoA_v2, array_, 0, from_, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyDtoA_v2_ptds, array_, 0, from_, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoD_v2, to_, array_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoD_v2_ptds, to_, array_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoA_v2, array_, 0, other_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoA_v2_ptds, array_, 0, other_, 0, 16)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyHtoAAsync_v2, array_, 0, host_, 16, nullptr)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyHtoAAsync_v2_ptsz, array_, 0, host_, 16, nullptr)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoHAsync_v2, host_, array_, 0, 16, nullptr)
COPY_HOOK_TEST_F(ArrayCopy, cuMemcpyAtoHAsync_v2_ptsz, host_, array_, 0, 16, nullptr)

}  // namespace
}  // namespace sluice::hooks
