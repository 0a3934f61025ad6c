// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class Launch : public ContextTest {};

TEST_F(Launch, RunsAKernelAndCopiesBack) {
  const CUdeviceptr memory = Alloc(4096);
  ASSERT_CU(Fill(memory, 0xabcd1234, 1024));
  EXPECT_EQ(Read32(memory), 0xabcd1234u);
  EXPECT_EQ(Read32(memory + 4092), 0xabcd1234u);
  EXPECT_CU(cuMemFree_v2(memory));
}

TEST_F(Launch, TakesArgumentsFromABuffer) {
  const CUdeviceptr memory = Alloc(4096);
  struct {
    CUdeviceptr target;
    uint32_t value;
    uint32_t pad;
    uint64_t count;
  } args{memory, 7, 0, 4};
  size_t bytes = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  ASSERT_CU(cuLaunchKernel(Kernel("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  args.value = 9;  // the call took its copy
  EXPECT_EQ(Read32(memory + 12), 7u);
}

TEST_F(Launch, TakesLargeArguments) {
  CUdeviceptr memory = Alloc(4096);
  uint32_t values[64];
  for (uint32_t i = 0; i < 64; ++i) values[i] = i * i;
  ASSERT_CU(ContextTest::Launch("big", {&memory, values}));
  EXPECT_EQ(Read32(memory + 63 * 4), 63u * 63u);
}

TEST_F(Launch, PassesTheShape) {
  CUdeviceptr memory = Alloc(4096);
  void* params[] = {&memory};
  ASSERT_CU(cuLaunchKernel(Kernel("shape"), 5, 4, 3, 32, 2, 1, 128, nullptr, params, nullptr));
  uint32_t seen[7];
  ASSERT_CU(cuMemcpyDtoH_v2(seen, memory, sizeof seen));
  const bool shared = OwnKernels() || RealDriver();
  const uint32_t expected[7] = {5, 4, 3, 32, 2, 1, shared ? 128u : 0u};
  EXPECT_EQ(memcmp(seen, expected, sizeof seen), 0);
  for (const auto launch : {cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz}) {
    ASSERT_CU(cuMemsetD8_v2(memory, 0, 4096));
    ASSERT_CU(launch(Kernel("shape"), 5, 4, 3, 32, 2, 1, 128, nullptr, params));
    ASSERT_CU(cuCtxSynchronize());
    ASSERT_CU(cuMemcpyDtoH_v2(seen, memory, sizeof seen));
    EXPECT_EQ(memcmp(seen, expected, sizeof seen), 0);
  }
}

// The launches before cuLaunchKernel: what is set stays for the next one.
TEST_F(Launch, TakesShapeAndArgumentsOneByOne) {
  const CUdeviceptr memory = Alloc(4096);
  const CUfunction fill = Kernel("fill");
  ASSERT_CU(cuFuncSetBlockShape(fill, 1, 1, 1));
  CUdeviceptr target = memory;
  uint64_t count = 4;
  ASSERT_CU(cuParamSetSize(fill, 24));
  ASSERT_CU(cuParamSetv(fill, 0, &target, sizeof target));
  ASSERT_CU(cuParamSeti(fill, 8, 7));
  ASSERT_CU(cuParamSetv(fill, 16, &count, sizeof count));
  ASSERT_CU(cuLaunch(fill));
  EXPECT_EQ(Read32(memory + 12), 7u);
  ASSERT_CU(cuParamSetf(fill, 8, 1.0f));
  ASSERT_CU(cuLaunch(fill));
  EXPECT_EQ(Read32(memory + 12), 0x3f800000u);
}

TEST_F(Launch, RefusesBadShapesAndArgumentsOneByOne) {
  OnlySimulated("a real driver takes an offset as it is, and crashes");
  const CUfunction fill = Kernel("fill");
  EXPECT_EQ(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE) << "nothing is set";
  uint64_t count = 4;
  EXPECT_EQ(cuParamSetv(fill, -1, &count, sizeof count), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetBlockShape(fill, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchGrid(fill, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, PassesTheShapeOfOldLaunches) {
  CUdeviceptr memory = Alloc(4096);
  const CUfunction shape = Kernel("shape");
  ASSERT_CU(cuFuncSetBlockShape(shape, 32, 2, 1));
  ASSERT_CU(cuFuncSetSharedSize(shape, 128));
  ASSERT_CU(cuParamSetv(shape, 0, &memory, sizeof memory));
  ASSERT_CU(cuParamSetSize(shape, sizeof memory));
  const bool shared = OwnKernels() || RealDriver();
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const CUstream where : {CUstream{nullptr}, stream}) {
    ASSERT_CU(cuMemsetD8_v2(memory, 0, 4096));
    ASSERT_CU(cuCtxSynchronize());
    ASSERT_CU(where == nullptr ? cuLaunchGrid(shape, 5, 4) : cuLaunchGridAsync(shape, 5, 4, where));
    ASSERT_CU(cuStreamSynchronize(where));
    uint32_t seen[7];
    ASSERT_CU(cuMemcpyDtoH_v2(seen, memory, sizeof seen));
    const uint32_t expected[7] = {5, 4, 1, 32, 2, 1, shared ? 128u : 0u};
    EXPECT_EQ(memcmp(seen, expected, sizeof seen), 0);
  }
  EXPECT_CU(cuStreamDestroy_v2(stream));
}

TEST_F(Launch, OneCallForSeveralDevicesSaysWhereByItsStreams) {
  OnlySimulated("a device may be unable to take part");
  const CUdeviceptr memory = Alloc(4096);
  CUdeviceptr target = memory;
  uint32_t value = 7;
  uint64_t count = 4;
  void* params[] = {&target, &value, &count};
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_LAUNCH_PARAMS here{Kernel("fill"), 1, 1, 1, 1, 1, 1, 0, stream, params};
  ASSERT_CU(cuCtxSetCurrent(nullptr));
  ASSERT_CU(cuLaunchCooperativeKernelMultiDevice(&here, 1, 0));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read32(memory + 12), 7u);
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(&here, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(&here, 1, 4), CUDA_ERROR_INVALID_VALUE);
  here.hStream = nullptr;
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(&here, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuStreamDestroy_v2(stream));
}

TEST_F(Launch, RefusesBadShapesAndHandles) {
  const CUfunction f = Kernel("nothing");
  EXPECT_EQ(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 64 * 1024, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(Kernel("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, NamesWhatIsWrongWithAModule) {
  OnlySimulated("it is about images of the simulated GPU");
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, "// simgpu-module 1\nAAAA"), CUDA_ERROR_INVALID_IMAGE);
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module_, "absent"), CUDA_ERROR_NOT_FOUND);
  for (const char* name : {"other_abi", "lasts_narrow", "lasts_beyond"}) {
    EXPECT_EQ(cuModuleGetFunction(&function, module_, name), CUDA_ERROR_NOT_FOUND) << name;
  }
}

TEST_F(Launch, AStrayPointerEndsTheContextOnly) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  CUfunction fill = nullptr;
  ASSERT_CU(cuModuleGetFunction(&fill, module, "fill"));
  CUdeviceptr nowhere = 0x400000000000 + (uint64_t{1} << 40);
  uint32_t value = 1;
  uint64_t count = 1;
  void* params[] = {&nowhere, &value, &count};
  const uint64_t faults = Stat("faults");
  ASSERT_CU(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Stat("faults"), faults + 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);  // sticky
  EXPECT_EQ(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr memory = Alloc(64);
  ASSERT_CU(Fill(memory, 3, 1));
  EXPECT_EQ(Read32(memory), 3u);
}

TEST_F(Launch, ATrapIsALaunchFailure) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  CUfunction trap = nullptr;
  ASSERT_CU(cuModuleGetFunction(&trap, module, "trap"));
  ASSERT_CU(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

}  // namespace
}  // namespace sluice::contract
