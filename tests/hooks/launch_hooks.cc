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
