// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/contract/nvml.h"
#include "tests/hooks/hook_fixture.h"

// What the management library says inside a job, found as programs find it: dlopen and dlsym.

namespace sluice::hooks {
namespace {

const bool kBystander = contract::AddRole("bystander", [] {
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc_v2(&at, 4096) != CUDA_SUCCESS ||
      cuMemsetD8_v2(at, 1, 4096) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS) {
    return 1;
  }
  contract::WriteToTest(0);
  contract::ReadFromTest();
  return 0;
});

/// A monitor: it asks, and does not use the GPU.
const bool kMonitor = contract::AddRole("monitor", [] {
  nvmlDevice_t device = nullptr;
  nvmlMemory_t memory{};
  if (NVML(nvmlInit_v2)() != NVML_SUCCESS ||
      NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device) != NVML_SUCCESS ||
      NVML(nvmlDeviceGetMemoryInfo)(device, &memory) != NVML_SUCCESS) {
    return 1;
  }
  contract::WriteToTest(memory.total);
  contract::WriteToTest(memory.used);
  return 0;
});

class NvmlHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
    Hook::TearDown();
  }

  /// Beside a process that uses the GPU and is none of the job's.
  template <typename Info, typename Get>
  void ExpectOnlyOurs(Get get) {
    unsetenv("LD_PRELOAD");
    contract::OtherProcess bystander("bystander");
    bystander.Read();
    unsigned count = 0;
    EXPECT_EQ(get(device_, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 1u);
    std::vector<Info> infos(8);
    count = 8;
    ASSERT_EQ(get(device_, &count, infos.data()), NVML_SUCCESS);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(infos[0].pid, static_cast<unsigned>(getpid()));
    EXPECT_GT(infos[0].usedGpuMemory, 0u);
    EXPECT_EQ(get(device_, nullptr, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  }
  nvmlDevice_t device_ = nullptr;
};

TEST_F(NvmlHook, nvmlDeviceGetMemoryInfo) {
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, 3 * kMiB));
  nvmlMemory_t memory{};
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device_, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, kLimit);
  EXPECT_EQ(memory.used, 3 * kMiB);
  EXPECT_EQ(memory.free, kLimit - 3 * kMiB);
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  contract::OtherProcess monitor("monitor");
  EXPECT_EQ(monitor.Read(), kLimit);
  EXPECT_EQ(monitor.Read(), 3 * kMiB);
  EXPECT_EQ(monitor.Join(), 0);
}

TEST_F(NvmlHook, nvmlDeviceGetMemoryInfo_v2) {
  // The same as the driver says, with what is outside the pool.
  CUdeviceptr at = 0;
  CUdeviceptr managed = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, 3 * kMiB));
  ASSERT_CU(cuMemAllocManaged(&managed, kMiB, 1));
  nvmlMemory_v2_t memory{};
  memory.version = kNvmlMemoryV2;
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device_, &memory), NVML_SUCCESS);
  size_t free_bytes = 0;
  size_t total = 0;
  ASSERT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT_EQ(memory.total, total);
  EXPECT_EQ(memory.free, free_bytes);
  EXPECT_EQ(memory.used, 4 * kMiB);
  memory.version = 0;  // what the driver says of it is what the program is told
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device_, &memory), NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST_F(NvmlHook, nvmlDeviceGetComputeRunningProcesses) {
  ExpectOnlyOurs<nvmlProcessInfo_v1_t>(NVML(nvmlDeviceGetComputeRunningProcesses));
}
TEST_F(NvmlHook, nvmlDeviceGetComputeRunningProcesses_v2) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetComputeRunningProcesses_v2));
}
TEST_F(NvmlHook, nvmlDeviceGetComputeRunningProcesses_v3) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetComputeRunningProcesses_v3));
}

/// Both processes count as drawing, too.
class NvmlGraphicsHook : public NvmlHook {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("SLUICE_SIMGPU_DRAWS", "1", 1), 0);
    NvmlHook::SetUp();
  }
};

TEST_F(NvmlGraphicsHook, nvmlDeviceGetGraphicsRunningProcesses) {
  ExpectOnlyOurs<nvmlProcessInfo_v1_t>(NVML(nvmlDeviceGetGraphicsRunningProcesses));
}
TEST_F(NvmlGraphicsHook, nvmlDeviceGetGraphicsRunningProcesses_v2) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetGraphicsRunningProcesses_v2));
}
TEST_F(NvmlGraphicsHook, nvmlDeviceGetGraphicsRunningProcesses_v3) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3));
}

// mutation_test runs these on a GPU that is shared through MPS.
TEST_F(NvmlHook, nvmlDeviceGetMPSComputeRunningProcesses) {
  ExpectOnlyOurs<nvmlProcessInfo_v1_t>(NVML(nvmlDeviceGetMPSComputeRunningProcesses));
}
TEST_F(NvmlHook, nvmlDeviceGetMPSComputeRunningProcesses_v2) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2));
}
TEST_F(NvmlHook, nvmlDeviceGetMPSComputeRunningProcesses_v3) {
  ExpectOnlyOurs<nvmlProcessInfo_v2_t>(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3));
}

TEST_F(NvmlHook, nvmlDeviceGetProcessUtilization) {
  unsetenv("LD_PRELOAD");
  contract::OtherProcess bystander("bystander");
  bystander.Read();
  const auto ask = NVML(nvmlDeviceGetProcessUtilization);
  unsigned count = 8;
  nvmlProcessUtilizationSample_t samples[8];
  EXPECT_EQ(ask(device_, samples, &count, 0), NVML_ERROR_NOT_FOUND) << "others have computed";
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, kMiB));
  ASSERT_CU(cuMemsetD8_v2(at, 1, kMiB));
  ASSERT_CU(cuCtxSynchronize());
  count = 8;
  EXPECT_EQ(ask(device_, nullptr, &count, 0), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 1u);
  ASSERT_EQ(ask(device_, samples, &count, 0), NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(samples[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_LE(samples[0].smUtil, 100u);
  EXPECT_EQ(ask(device_, samples, &count, samples[0].timeStamp + 1'000'000'000'000),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(ask(device_, samples, nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace sluice::hooks
