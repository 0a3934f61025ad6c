// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// The daemon sees each launch once: gates, credit and profiles rest on that.

namespace sluice::hooks {
namespace {

class Launches : public Hook {
 protected:
  void ExpectCounted(const std::function<CUresult(CUfunction)>& launch) {
    Begin();
    const uint64_t before = Says("launches");
    const CUfunction function = Kernel("nothing");
    for (int i = 0; i < 5; ++i) ASSERT_CU(launch(function));
    ExpectSoon([this] { return Says("launches"); }, before + 5);
  }
  /// The same for launches whose shape the function has been told before.
  void ExpectOldCounted(const std::function<CUresult(CUfunction)>& launch) {
    ASSERT_CU(cuFuncSetBlockShape(Kernel("nothing"), 1, 1, 1));
    ExpectCounted(launch);
  }
  static CUlaunchConfig OneThread() {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    return config;
  }
};

TEST_F(Launches, cuLaunchKernel) {
  ExpectCounted([](CUfunction f) {
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  });
}

TEST_F(Launches, cuLaunchKernel_ptsz) {
  ExpectCounted([](CUfunction f) {
    return cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  });
}

TEST_F(Launches, cuLaunchCooperativeKernel) {
  ExpectCounted([](CUfunction f) {
    return cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr);
  });
}

TEST_F(Launches, cuLaunchCooperativeKernel_ptsz) {
  ExpectCounted([](CUfunction f) {
    return cuLaunchCooperativeKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr);
  });
}

// One call, and a launch on each of the GPUs, of which that on the managed one is recorded.
TEST_F(Launches, cuLaunchCooperativeKernelMultiDevice) {
  Begin();
  CUcontext second = nullptr;
  CUmodule module = nullptr;
  CUDA_LAUNCH_PARAMS both[2] = {};
  for (CUDA_LAUNCH_PARAMS& one : both) {
    one.gridDimX = one.gridDimY = one.gridDimZ = 1;
    one.blockDimX = one.blockDimY = one.blockDimZ = 1;
  }
  both[0].function = Kernel("nothing");
  ASSERT_CU(cuStreamCreate(&both[0].hStream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CU(cuCtxSetCurrent(second));
  ASSERT_CU(cuModuleLoadData(&module, contract::KernelImage().c_str()));
  ASSERT_CU(cuModuleGetFunction(&both[1].function, module, "nothing"));
  ASSERT_CU(cuStreamCreate(&both[1].hStream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuCtxSetCurrent(context_));
  const uint64_t before = Says("launches");
  for (int i = 0; i < 5; ++i) ASSERT_CU(cuLaunchCooperativeKernelMultiDevice(both, 2, 0));
  ExpectSoon([this] { return Says("launches"); }, before + 5);
  // What cannot be is the driver's to refuse.
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(both, 1000, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
}

TEST_F(Launches, cuLaunch) {
  ExpectOldCounted([](CUfunction f) { return cuLaunch(f); });
}

TEST_F(Launches, cuLaunchGrid) {
  ExpectOldCounted([](CUfunction f) { return cuLaunchGrid(f, 2, 1); });
}

TEST_F(Launches, cuLaunchGridAsync) {
  ExpectOldCounted([](CUfunction f) { return cuLaunchGridAsync(f, 2, 1, nullptr); });
}

TEST_F(Launches, cuLaunchKernelEx) {
  const CUlaunchConfig config = OneThread();
  ExpectCounted([&](CUfunction f) { return cuLaunchKernelEx(&config, f, nullptr, nullptr); });
}

TEST_F(Launches, cuLaunchKernelEx_ptsz) {
  const CUlaunchConfig config = OneThread();
  ExpectCounted([&](CUfunction f) { return cuLaunchKernelEx_ptsz(&config, f, nullptr, nullptr); });
}

}  // namespace
}  // namespace sluice::hooks
