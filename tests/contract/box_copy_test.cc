// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>
#include <numeric>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

class BoxCopy : public ContextTest {
 protected:
  /// Rows of `width` bytes to or from host memory.
  static CUDA_MEMCPY2D_v2 ToDevice(CUdeviceptr device, size_t device_pitch, const void* host,
                                   size_t host_pitch, size_t width, size_t height) {
    CUDA_MEMCPY2D_v2 copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.srcPitch = host_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = device_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return copy;
  }
  static CUDA_MEMCPY2D_v2 ToHost(void* host, size_t host_pitch, CUdeviceptr device,
                                 size_t device_pitch, size_t width, size_t height) {
    CUDA_MEMCPY2D_v2 copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = device;
    copy.srcPitch = device_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host;
    copy.dstPitch = host_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return copy;
  }
};

TEST_F(BoxCopy, RowsOfAPictureThereAndBack) {
  // 6 MiB of rows with odd widths: more than one piece of the staging area.
  constexpr size_t kWidth = 3001;
  constexpr size_t kHostPitch = 3072;
  constexpr size_t kHeight = 2100;
  std::vector<unsigned char> in(kHostPitch * kHeight);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 31 >> 3);
  CUdeviceptr device = 0;
  size_t pitch = 0;
  ASSERT_CU(cuMemAllocPitch_v2(&device, &pitch, kWidth, kHeight, 16));
  const CUDA_MEMCPY2D_v2 up = ToDevice(device, pitch, in.data(), kHostPitch, kWidth, kHeight);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, 0));
  ASSERT_CU(cuMemcpy2DAsync_v2(&up, stream));
  std::vector<unsigned char> out(kWidth * kHeight, 0xee);
  const CUDA_MEMCPY2D_v2 down = ToHost(out.data(), kWidth, device, pitch, kWidth, kHeight);
  ASSERT_CU(cuMemcpy2DAsync_v2(&down, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  for (size_t row = 0; row < kHeight; ++row) {
    ASSERT_EQ(memcmp(&out[row * kWidth], &in[row * kHostPitch], kWidth), 0) << row;
  }
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, PinnedMemoryIsCopiedInStreamOrder) {
  void* pinned = nullptr;
  ASSERT_CU(cuMemHostAlloc(&pinned, 4096, 0));
  memset(pinned, 0, 4096);
  const CUdeviceptr device = Alloc(4096);
  ASSERT_CU(cuMemsetD8_v2(device, 9, 4096));
  SharedWord word;
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  const CUDA_MEMCPY2D_v2 down = ToHost(pinned, 64, device, 128, 64, 8);
  ASSERT_CU(cuMemcpy2DAsync_v2(&down, stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[0], 0);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[8 * 64 - 1], 9);
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[8 * 64], 0);
  ASSERT_CU(cuMemFreeHost(pinned));
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, LayersOfLinearMemory) {
  const CUdeviceptr a = Alloc(4096);
  const CUdeviceptr b = Alloc(4096);
  std::vector<uint32_t> in(1024);
  std::iota(in.begin(), in.end(), 0u);
  ASSERT_CU(cuMemcpyHtoD_v2(a, in.data(), 4096));
  ASSERT_CU(cuMemsetD8_v2(b, 0xff, 4096));
  CUDA_MEMCPY3D_v2 copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = a;
  copy.srcPitch = 64;
  copy.srcHeight = 16;  // layers of 1 KiB
  copy.srcY = 1;
  copy.srcZ = 1;
  copy.dstDevice = b;
  copy.dstPitch = 32;
  copy.dstHeight = 2;
  copy.WidthInBytes = 8;
  copy.Height = 2;
  copy.Depth = 2;
  ASSERT_CU(cuMemcpy3D_v2(&copy));
  for (uint32_t z = 0; z < 2; ++z) {
    for (uint32_t y = 0; y < 2; ++y) {
      EXPECT_EQ(Read32(b + z * 64 + y * 32 + 4), ((z + 1) * 1024 + (y + 1) * 64) / 4 + 1);
      EXPECT_EQ(Read32(b + z * 64 + y * 32 + 8), 0xffffffffu);
    }
  }
  ASSERT_CU(cuMemFree_v2(a));
  ASSERT_CU(cuMemFree_v2(b));
}

TEST_F(BoxCopy, UnifiedCopiesTellAddressesApart) {
  const CUdeviceptr device = Alloc(64);
  const uint32_t in[4] = {1, 2, 3, 4};
  uint32_t out[4] = {};
  const auto address = [](const void* p) { return reinterpret_cast<CUdeviceptr>(p); };
  ASSERT_CU(cuMemcpy(device, address(in), sizeof in));
  ASSERT_CU(cuMemcpyAsync(device + 16, device, 16, nullptr));
  ASSERT_CU(cuMemcpy(address(out), device + 16, sizeof out));
  EXPECT_EQ(memcmp(in, out, sizeof in), 0);
  uint32_t copy[4] = {};
  ASSERT_CU(cuMemcpy(address(copy), address(in), sizeof in));  // between host memories
  EXPECT_EQ(copy[3], 4u);
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, DescriptionsAreChecked) {
  const CUdeviceptr device = Alloc(4096);
  std::vector<unsigned char> host(4096);
  const CUDA_MEMCPY2D_v2 good = ToDevice(device, 64, host.data(), 64, 32, 4);
  ASSERT_CU(cuMemcpy2D_v2(&good));
  EXPECT_EQ(cuMemcpy2D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D_v2 bad = good;
  bad.dstPitch = 16;
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.srcXInBytes = 40;
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.dstPitch = size_t{1} << 32;
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.dstDevice = reinterpret_cast<CUdeviceptr>(host.data());  // not memory of the device
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.dstMemoryType = static_cast<CUmemorytype>(7);
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.Height = SIZE_MAX / 2;
  EXPECT_EQ(cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.Height = 0;  // nothing to do
  EXPECT_CU(cuMemcpy2D_v2(&bad));
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, LevelsOfDetailMustBeZero) {
  OnlySimulated("a real driver does not look at them, whatever the header says");
  const CUdeviceptr device = Alloc(4096);
  CUDA_MEMCPY3D_v2 level{};
  level.srcMemoryType = level.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  level.srcDevice = level.dstDevice = device;
  level.WidthInBytes = level.Height = level.Depth = 1;
  level.srcLOD = 1;
  EXPECT_EQ(cuMemcpy3D_v2(&level), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, MemsetsOfRowsLeaveTheGaps) {
  const CUdeviceptr device = Alloc(4096);
  ASSERT_CU(cuMemsetD8_v2(device, 0, 4096));
  ASSERT_CU(cuMemsetD2D32_v2(device, 64, 0x01020304, 2, 3));
  ASSERT_CU(cuMemsetD2D16_v2(device + 512, 64, 0xabcd, 3, 2));
  ASSERT_CU(cuMemsetD2D8_v2(device + 1024, 16, 0x7f, 5, 2));
  ASSERT_CU(cuMemsetD16_v2(device + 2048, 0x1234, 2));
  for (uint64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(Read32(device + 64 * row), 0x01020304u);
    EXPECT_EQ(Read32(device + 64 * row + 4), 0x01020304u);
    EXPECT_EQ(Read32(device + 64 * row + 8), 0u);
  }
  EXPECT_EQ(Read32(device + 192), 0u);
  EXPECT_EQ(Read32(device + 512 + 64 + 4), 0x0000abcdu);
  EXPECT_EQ(Read32(device + 1024 + 16 + 4), 0x0000007fu);
  EXPECT_EQ(Read32(device + 1024 + 32), 0u);
  EXPECT_EQ(Read32(device + 2048), 0x12341234u);
  EXPECT_EQ(Read32(device + 2052), 0u);
  EXPECT_EQ(cuMemsetD2D32_v2(device, 6, 1, 1, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD2D32_v2(device, 4, 1, 2, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD16_v2(device + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFree_v2(device));
}

TEST_F(BoxCopy, ACopyTakesTheTimeOfItsBytes) {
  const CUdeviceptr a = Alloc(8 * kMiB);
  const CUdeviceptr b = Alloc(8 * kMiB);
  const auto time = [&](const auto& copy) {
    const uint64_t before = Stat("busy_ns");
    copy();
    EXPECT_CU(cuCtxSynchronize());
    return Stat("busy_ns") - before;
  };
  const uint64_t row = time([&] { EXPECT_CU(cuMemcpyDtoDAsync_v2(b, a, 4 * kMiB, nullptr)); });
  CUDA_MEMCPY2D_v2 copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstDevice = b;
  copy.srcPitch = copy.dstPitch = 8192;
  copy.WidthInBytes = 4096;
  copy.Height = 1024;
  const uint64_t box = time([&] { EXPECT_CU(cuMemcpy2DAsync_v2(&copy, nullptr)); });
  EXPECT_EQ(row, box);
  ASSERT_CU(cuMemFree_v2(a));
  ASSERT_CU(cuMemFree_v2(b));
}

}  // namespace
}  // namespace sluice::contract
