// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Several processes on one GPU: turns, the device clock, the counters, NVML.
#include <unistd.h>

#include "tests/contract/fixture.h"
#include "tests/contract/nvml.h"

namespace sluice::contract {
namespace {

class Sharing : public ContextTest {};

/// Runs as many 20 ms kernels as it is told to, then says so.
int RunSlowKernels() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction slow = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  if (cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&slow, module, "slow") != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(1);
  const uint64_t count = ReadFromTest();
  for (uint64_t i = 0; i < count; ++i) {
    cuLaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  return 0;
}
const bool kSlow = AddRole("slow", RunSlowKernels);

TEST_F(Sharing, TheDeviceClockCountsDeclaredTime) {
  const uint64_t busy = Stat("busy_ns");
  const uint64_t kernels = Stat("kernels");
  const uint64_t clock = Stat("device_clock_ns");
  for (int i = 0; i < 3; ++i) ASSERT_CU(Launch("slow", {}));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Stat("busy_ns"), busy + 60'000'000);
  EXPECT_EQ(Stat("kernels"), kernels + 3);
  EXPECT_GE(Stat("device_clock_ns"), clock + 60'000'000);
}

TEST_F(Sharing, TwoProcessesTakeTurns) {
  OtherProcess other("slow");
  EXPECT_EQ(other.Read(), 1u);
  const uint64_t switches = Stat("token_switches");
  const uint64_t busy = Stat("busy_ns");
  other.Write(10);
  for (int i = 0; i < 10; ++i) ASSERT_CU(Launch("slow", {}));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  // One GPU: the times add up, and with a time slice of 2 ms each 20 ms kernel ends its slice.
  EXPECT_EQ(Stat("busy_ns"), busy + 400'000'000);
  EXPECT_GE(Stat("token_switches"), switches + 5);
}

TEST_F(Sharing, ADeadOwnerOfTheTurnIsSkipped) {
  OtherProcess other("slow");
  EXPECT_EQ(other.Read(), 1u);
  other.Write(60);
  const uint64_t kernels = Stat("kernels");
  ASSERT_TRUE(Eventually([&] { return Stat("kernels") > kernels; }));
  other.Kill();
  ASSERT_CU(Launch("slow", {}));
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Sharing, AFaultInOneProcessIsNotSeenByAnother) {
  OtherProcess other("slow");
  EXPECT_EQ(other.Read(), 1u);
  CUcontext mine = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&mine, 0, 0));
  ASSERT_CU(cuMemsetD8_v2(0x470000000000, 0, 16));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  other.Write(1);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_CU(cuCtxDestroy_v2(mine));
}

bool Listed(nvmlDevice_t device, int pid) {
  const auto list = NVML(nvmlDeviceGetComputeRunningProcesses_v3);
  nvmlProcessInfo_v2_t infos[32];
  unsigned count = 32;
  EXPECT_EQ(list(device, &count, infos), NVML_SUCCESS);
  for (unsigned i = 0; i < count; ++i) {
    if (infos[i].pid == static_cast<unsigned>(pid)) return true;
  }
  return false;
}

TEST_F(Sharing, NvmlListsAProcessAsLongAsItsContextLives) {
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  EXPECT_TRUE(Listed(device, getpid()));
  OtherProcess other("slow");
  EXPECT_EQ(other.Read(), 1u);
  const int pid = other.pid();
  EXPECT_TRUE(Listed(device, pid));
  other.Kill();
  EXPECT_TRUE(Eventually([&] { return !Listed(device, pid); }));
  unsigned count = 0;
  nvmlProcessInfo_v2_t info;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v2)(device, &count, &info),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_GE(count, 1u);
  char uuid[96];
  ASSERT_EQ(NVML(nvmlDeviceGetUUID)(device, uuid, sizeof uuid), NVML_SUCCESS);
  nvmlDevice_t same = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)(uuid, &same), NVML_SUCCESS);
  EXPECT_EQ(same, device);
  nvmlMemory_v2_t memory{};
  const auto info_v2 = NVML(nvmlDeviceGetMemoryInfo_v2);
  EXPECT_EQ(info_v2(device, &memory), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  memory.version = kNvmlMemoryV2;
  EXPECT_EQ(info_v2(device, &memory), NVML_SUCCESS);
  if (!RealDriver()) {
    EXPECT_EQ(memory.total, uint64_t{64} << 20);
    EXPECT_EQ(memory.free, FreeBytes());
  }
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

}  // namespace
}  // namespace sluice::contract
