// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Calls that come late or fail because somebody asked for it. Of the simulated driver only.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class InjectionTest : public ContextTest {
 protected:
  void SetUp() override {
    OnlySimulated("a real driver fails by itself");
    ContextTest::SetUp();
  }
  void TearDown() override {
    if (!RealDriver()) {
      EXPECT_EQ(Inject(""), 0);
    }
    ContextTest::TearDown();
  }
};

TEST_F(InjectionTest, TheThirdCallFailsAndNothingElse) {
  const size_t before = FreeBytes();
  ASSERT_EQ(Inject("cuMemCreate@3=CUDA_ERROR_OUT_OF_MEMORY"), 0);
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handles[4] = {};
  std::vector<CUresult> results;
  for (CUmemGenericAllocationHandle& handle : handles) {
    results.push_back(cuMemCreate(&handle, Granularity(), &prop, 0));
  }
  EXPECT_EQ(results, (std::vector<CUresult>{CUDA_SUCCESS, CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY,
                                            CUDA_SUCCESS}));
  EXPECT_EQ(handles[2], 0u);
  EXPECT_EQ(FreeBytes(), before - 3 * Granularity());  // the refused one did nothing
  EXPECT_EQ(Stat("calls"), 4u);
  EXPECT_EQ(Stat("hits"), 1u);
  for (const CUmemGenericAllocationHandle handle : handles) {
    if (handle == 0) continue;
    EXPECT_CU(cuMemRelease(handle));
  }
}

TEST_F(InjectionTest, AnErrorWithoutANumberMeetsEveryCallUntilItIsTakenBack) {
  ASSERT_EQ(Inject("cuMemAlloc*=2"), 0);
  CUdeviceptr pointer = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cuMemAlloc_v2(&pointer, 4096), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocAsync(&pointer, 4096, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(Inject(""), 0);
  ASSERT_CU(cuMemAlloc_v2(&pointer, 4096));
  EXPECT_CU(cuMemFree_v2(pointer));
}

// A call that the driver makes of itself is not a call of the program.
TEST_F(InjectionTest, OnlyCallsOfTheProgramCount) {
  ASSERT_EQ(Inject("cuCtxSynchronize_v2=719"), 0);
  EXPECT_CU(cuCtxSynchronize());  // goes through the newer form inside
  EXPECT_EQ(cuCtxSynchronize_v2(nullptr), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(InjectionTest, FunctionsFoundAtRunTimeSufferToo) {
  ASSERT_EQ(Inject("cuMemGetInfo_v2=999"), 0);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  ASSERT_CU(cuGetProcAddress_v2("cuMemGetInfo", &found, 12000, 0, &status));
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_EQ(reinterpret_cast<PFN_cuMemGetInfo_v2>(found)(&free_bytes, &total), CUDA_ERROR_UNKNOWN);
  void* exported = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemGetInfo_v2");
  EXPECT_EQ(exported, found);
}

TEST_F(InjectionTest, ADelayedCallTakesLonger) {
  ASSERT_EQ(Inject("cuCtxGetCurrent=30ms"), 0);
  CUcontext context = nullptr;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_CU(cuCtxGetCurrent(&context));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  EXPECT_EQ(context, context_);
}

TEST_F(InjectionTest, WrongRulesAreRefusedAndChangeNothing) {
  ASSERT_EQ(Inject("cuMemCreate=2"), 0);
  EXPECT_EQ(Inject("cuMemCraete=2"), 2);
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, Granularity(), &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

/// Answers of the first three cuMemGetInfo, in a process with injections of its own.
int Three() {
  CUcontext context = nullptr;
  const CUresult start = cuInit(0);
  WriteToTest(start);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  size_t free_bytes = 0;
  size_t total = 0;
  for (int i = 0; i < 3; ++i) WriteToTest(cuMemGetInfo_v2(&free_bytes, &total));
  ReadFromTest();
  return 0;
}
const bool kThree = AddRole("three", Three);

TEST_F(InjectionTest, TheEnvironmentConcernsItsProcessAlone) {
  setenv("SLUICE_SIMGPU_INJECT", "cuMemGetInfo_v2@2=999", 1);
  OtherProcess other("three");
  setenv("SLUICE_SIMGPU_INJECT", "cuMemGetinfo=2", 1);
  OtherProcess wrong("three");
  unsetenv("SLUICE_SIMGPU_INJECT");
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(other.Read(), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) FreeBytes();
  // Misspelt rules must not look like a run in which nothing failed.
  EXPECT_EQ(wrong.Read(), CUDA_ERROR_SYSTEM_NOT_READY);
}

}  // namespace
}  // namespace sluice::contract
