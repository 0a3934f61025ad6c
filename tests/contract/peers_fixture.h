// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "tests/contract/fixture.h"

namespace sluice::contract {

/// A test with two GPUs, each with its primary context and the module of kernels.cc. The first
/// one's context is current.
class PeersTest : public ::testing::Test {
 public:
  static constexpr size_t kWords = 1024;
  static constexpr size_t kBytes = kWords * sizeof(uint32_t);

 protected:
  void SetUp() override {
    ASSERT_CU(cuInit(0));
    int count = 0;
    ASSERT_CU(cuDeviceGetCount(&count));
    if (count < 2) GTEST_SKIP() << "needs two GPUs, there is " << count;
    int can = 0;
    ASSERT_CU(cuDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0) GTEST_SKIP() << "needs two GPUs that reach each other";
    for (int gpu : {1, 0}) {
      ASSERT_CU(cuDevicePrimaryCtxRetain(&context_[gpu], gpu));
      Use(gpu);
      ASSERT_CU(cuModuleLoadData(&module_[gpu], KernelImage().c_str()));
    }
  }
  void TearDown() override {
    cuCtxSetCurrent(nullptr);
    for (int gpu : {0, 1}) {
      if (context_[gpu] != nullptr) {
        EXPECT_CU(cuDevicePrimaryCtxRelease_v2(gpu));
      }
    }
  }

  void Use(int gpu) { ASSERT_CU(cuCtxSetCurrent(context_[gpu])); }
  CUdeviceptr Alloc(int gpu, size_t bytes = kBytes) {
    Use(gpu);
    CUdeviceptr memory = 0;
    EXPECT_CU(cuMemAlloc_v2(&memory, bytes));
    return memory;
  }
  void Free(int gpu, CUdeviceptr memory) {
    Use(gpu);
    EXPECT_CU(cuMemFree_v2(memory));
  }
  /// A kernel of this GPU writes the words.
  void Fill(int gpu, CUdeviceptr target, uint32_t value, uint64_t words = kWords) {
    Use(gpu);
    EXPECT_CU(FillIn(module_[gpu], target, value, words));
    EXPECT_CU(cuCtxSynchronize());
  }
  static CUresult FillIn(CUmodule module, CUdeviceptr target, uint32_t value, uint64_t words) {
    CUfunction fill = nullptr;
    EXPECT_CU(cuModuleGetFunction(&fill, module, "fill"));
    void* params[] = {&target, &value, &words};
    return cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
  }
  /// What a kernel of a context that is made for it meets: it may break that context.
  CUresult FillFromElsewhere(int gpu, CUdeviceptr target) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    EXPECT_CU(cuCtxCreate_v2(&context, 0, gpu));
    EXPECT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
    EXPECT_CU(FillIn(module, target, 7, 1));
    const CUresult result = cuCtxSynchronize();
    EXPECT_CU(cuCtxDestroy_v2(context));
    Use(gpu);
    return result;
  }
  /// The words as the GPU that they lie on sees them.
  std::vector<uint32_t> Read(int gpu, CUdeviceptr memory, size_t words = kWords) {
    Use(gpu);
    std::vector<uint32_t> read(words);
    EXPECT_CU(cuMemcpyDtoH_v2(read.data(), memory, words * sizeof(uint32_t)));
    return read;
  }
  static std::vector<uint32_t> All(uint32_t value, size_t words = kWords) {
    return std::vector<uint32_t>(words, value);
  }

  CUcontext context_[2] = {};
  CUmodule module_[2] = {};
};

}  // namespace sluice::contract
