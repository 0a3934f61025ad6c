// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Names of older headers that a driver on 64 bits keeps, limits of a context, and what a single
// device says about peers and multicast.
#include <cstring>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

class Names : public ContextTest {};

// The header maps cuCtxCreate to another name since 3.2, when addresses became 64 bits wide. A
// driver may be unable to make a context of that time any more.
TEST_F(Names, OldNamesOfContextsWork) {
  CUcontext context = nullptr;
  const CUresult made = cuCtxCreate(&context, 0, 0);
  Answer("cuCtxCreate_by_its_old_name", NameOf(made));
  if (made != CUDA_SUCCESS) {
    ASSERT_CU(cuCtxCreate_v2(&context, 0, 0));
  }
  CUcontext current = nullptr;
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context);
  CUcontext popped = nullptr;
  EXPECT_CU(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, context);
  EXPECT_CU(cuCtxPushCurrent(context));
  EXPECT_CU(cuCtxDestroy(context));
}

TEST_F(Names, AContextOfAnOldNameCostsWhatOthersCost) {
  OnlySimulated("a real driver may be unable to make one");
  const size_t before = FreeBytes();
  CUcontext context = nullptr;
  ASSERT_CU(cuCtxCreate(&context, 0, 0));
  EXPECT_LT(FreeBytes(), before);
  ASSERT_CU(cuCtxDestroy(context));
  EXPECT_TRUE(Eventually([&] { return FreeBytes() == before; }));
  EXPECT_EQ(cuCtxDestroy(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(Names, AContextLivesUntilAllWhoAttachedToItAreGone) {
  const size_t before = FreeBytes();
  CUcontext made = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&made, 0, 0));
  CUcontext attached = nullptr;
  EXPECT_EQ(cuCtxAttach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuCtxAttach(&attached, 0));
  EXPECT_EQ(attached, made);
  ASSERT_CU(cuCtxDetach(attached));
  CUcontext current = nullptr;
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, made) << "and is what it was until then";
  EXPECT_CU(cuCtxSynchronize());
  ASSERT_CU(cuCtxDetach(made));
  EXPECT_TRUE(Eventually([&] { return FreeBytes() == before; }));
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(cuCtxDetach(made), CUDA_ERROR_INVALID_CONTEXT) << "it is not current";
}

// No page says either.
TEST_F(Names, WhatAttachingToAContextAllows) {
  CUcontext made = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&made, 0, 0));
  CUcontext attached = nullptr;
  ASSERT_CU(cuCtxAttach(&attached, 0));
  const bool destroyed = cuCtxDestroy_v2(made) == CUDA_SUCCESS;
  AnswerIf("attached_context_can_be_destroyed", destroyed);
  if (!destroyed) {
    EXPECT_CU(cuCtxDetach(attached));
    EXPECT_CU(cuCtxDetach(made));
  }
  ASSERT_CU(cuCtxSetCurrent(context_));
  const bool primary = cuCtxAttach(&attached, 0) == CUDA_SUCCESS;
  AnswerIf("primary_context_can_be_attached_to", primary);
  if (primary) {
    EXPECT_CU(cuCtxDetach(attached));
  }
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Names, ContextsForGraphicsAndVideoAreLikeOthers) {
  OnlySimulated("a real one may want what it is to work with");
  const size_t before = FreeBytes();
  const auto like_others = [&](const char* name, auto make) {
    CUcontext made = nullptr;
    ASSERT_CU(make(&made)) << name;
    EXPECT_LT(FreeBytes(), before) << name;
    EXPECT_CU(cuCtxDestroy_v2(made)) << name;
    EXPECT_TRUE(Eventually([&] { return FreeBytes() == before; })) << name;
  };
  like_others("GL", [](CUcontext* out) { return cuGLCtxCreate(out, 0, 0); });
  like_others("GL v2", [](CUcontext* out) { return cuGLCtxCreate_v2(out, 0, 0); });
  like_others("VDPAU", [](CUcontext* out) { return cuVDPAUCtxCreate(out, 0, 0, 1, nullptr); });
  like_others("VDPAU v2",
              [](CUcontext* out) { return cuVDPAUCtxCreate_v2(out, 0, 0, 1, nullptr); });
}

TEST_F(Names, OldNamesOfStreamsAndEventsWork) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  ASSERT_CU(cuEventRecord(event, stream));
  EXPECT_CU(cuEventDestroy(event));
  EXPECT_CU(cuStreamDestroy(stream));
}

TEST_F(Names, NothingIsDestroyedTwice) {
  OnlySimulated("a real driver reads what a stale handle points to");
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  EXPECT_CU(cuEventDestroy(event));
  EXPECT_EQ(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuStreamDestroy(stream));
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
}

// Sizes were 32 bits wide. A driver may keep such a call to contexts of that time.
TEST_F(Names, OldNamesOfArraysWork) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v1 flat{64, 32, CU_AD_FORMAT_FLOAT, 2};
  const CUresult made = cuArrayCreate(&array, &flat);
  Answer("cuArrayCreate_by_its_old_name", NameOf(made));
  CUDA_ARRAY3D_DESCRIPTOR_v2 is{};
  if (made == CUDA_SUCCESS) {
    ASSERT_CU(cuArray3DGetDescriptor_v2(&is, array));
    EXPECT_EQ(is.Width, 64u);
    EXPECT_EQ(is.Height, 32u);
    EXPECT_EQ(is.Format, CU_AD_FORMAT_FLOAT);
    EXPECT_EQ(is.NumChannels, 2u);
    EXPECT_CU(cuArrayDestroy(array));
  }
  CUDA_ARRAY3D_DESCRIPTOR_v1 deep{16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  const CUresult made_deep = cuArray3DCreate(&array, &deep);
  Answer("cuArray3DCreate_by_its_old_name", NameOf(made_deep));
  if (made_deep == CUDA_SUCCESS) {
    ASSERT_CU(cuArray3DGetDescriptor_v2(&is, array));
    EXPECT_EQ(is.Width, 16u);
    EXPECT_EQ(is.Depth, 4u);
    EXPECT_CU(cuArrayDestroy(array));
  }
  EXPECT_NE(cuArrayCreate(&array, nullptr), CUDA_SUCCESS);
  EXPECT_NE(cuArray3DCreate(&array, nullptr), CUDA_SUCCESS);
}

TEST_F(Names, OldNamesOfThePrimaryContextWork) {
  CUcontext again = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(again, context_);
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO), CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  Answer("a_primary_context_that_was_reset", NameOf(cuCtxSynchronize()));
  ASSERT_CU(cuCtxSetCurrent(nullptr));
  EXPECT_CU(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  int devices = 0;
  ASSERT_CU(cuDeviceGetCount(&devices));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(devices), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Names, ALargerHeapOfKernelsIsTakenFromTheGpu) {
  CUcontext context = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&context, 0, 0));
  size_t heap = 0;
  ASSERT_CU(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(heap, 8 * kMiB);
  const size_t before = FreeBytes();
  const Counted counted = CountedBytes("context");
  ASSERT_CU(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 12 * kMiB));
  ASSERT_CU(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(heap, 12 * kMiB);
  EXPECT_EQ(before - FreeBytes(), 4 * kMiB);
  EXPECT_EQ(CountedBytes("context").held, counted.held + 4 * kMiB);
  ASSERT_CU(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 * kMiB));
  EXPECT_EQ(before - FreeBytes(), 5 * kMiB);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 63 * kMiB + 8 * kMiB),
            CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(heap, 12 * kMiB);
  EXPECT_EQ(before - FreeBytes(), 5 * kMiB);
  ASSERT_CU(cuCtxDestroy_v2(context));
  EXPECT_TRUE(Eventually([&] { return FreeBytes() > before; }));
  EXPECT_EQ(CountedBytes("context").held, counted.held - kMiB);
}

TEST_F(Names, OtherLimitsAreRememberedOrRefused) {
  size_t value = 0;
  ASSERT_CU(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
  ASSERT_CU(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 2048u);
  ASSERT_CU(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128));
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 256), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY));
  EXPECT_EQ(value, 128u);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2), CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_EQ(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_SHMEM_SIZE, 1), CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Names, ADeviceIsNotItsOwnPeer) {
  int can = 7;
  ASSERT_CU(cuDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  int value = 7;
  EXPECT_EQ(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  ASSERT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Names, APeerCopyWithinOneContextIsACopy) {
  const CUdeviceptr from = Alloc(4096);
  const CUdeviceptr to = Alloc(4096);
  ASSERT_CU(cuMemsetD32_v2(from, 0x5eed, 1024));
  ASSERT_CU(cuMemcpyPeer(to, context_, from, context_, 4096));
  EXPECT_EQ(Read32(to + 4092), 0x5eedu);
  ASSERT_CU(cuMemsetD32_v2(from, 0xfeed, 1024));
  ASSERT_CU(cuMemcpyPeerAsync(to, context_, from, context_, 8, nullptr));
  EXPECT_EQ(Read32(to + 4), 0xfeedu);
  EXPECT_EQ(Read32(to + 8), 0x5eedu);
  CUDA_MEMCPY3D_PEER box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  box.dstDevice = to;
  box.srcContext = box.dstContext = context_;
  box.srcPitch = box.dstPitch = 64;
  box.WidthInBytes = 4;
  box.Height = 2;
  box.Depth = 1;
  ASSERT_CU(cuMemsetD32_v2(from, 0xb0c5, 1024));
  ASSERT_CU(cuMemcpy3DPeer(&box));
  EXPECT_EQ(Read32(to), 0xb0c5u);
  EXPECT_EQ(Read32(to + 4), 0xfeedu);
  EXPECT_EQ(Read32(to + 64), 0xb0c5u);
  // None means the current one.
  ASSERT_CU(cuMemsetD32_v2(from, 0xcafe, 1024));
  EXPECT_CU(cuMemcpyPeer(to, nullptr, from, context_, 4));
  EXPECT_EQ(Read32(to), 0xcafeu);
  ASSERT_CU(cuMemFree_v2(from));
  ASSERT_CU(cuMemFree_v2(to));
}

TEST_F(Names, TheBusFindsTheDevice) {
  char id[16] = {};
  ASSERT_CU(cuDeviceGetPCIBusId(id, sizeof id, 0));
  EXPECT_EQ(strlen(id), 12u);
  CUdevice device = 7;
  ASSERT_CU(cuDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "0000:fe:00.0"), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "a bus"), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Names, MulticastIsNotSupportedAndTheAttributeSaysSo) {
  int supported = 7;
  ASSERT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
  EXPECT_EQ(supported, 0);
  CUmulticastObjectProp prop{};
  prop.numDevices = 1;
  prop.size = 2 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMulticastCreate(&handle, &prop), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMulticastCreate(nullptr, &prop), CUDA_ERROR_NOT_SUPPORTED);
  size_t granularity = 0;
  EXPECT_EQ(cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_MINIMUM),
            CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace sluice::contract
