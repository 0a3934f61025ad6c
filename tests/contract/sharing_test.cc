// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Several processes on one GPU: turns, the device clock, the counters, NVML.
#include <unistd.h>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"
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

/// What a setting says of memory that nobody was given; and, when told to, what becomes of a kernel
/// that writes there. A process of its own: a real driver is of no use to it any more.
int Fault() {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  if (!StartContext() || cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&fill, module, "fill") != CUDA_SUCCESS) {
    return 1;
  }
  CUdeviceptr nowhere = 0x470000000000;
  uint32_t value = 0;
  uint64_t count = 4;
  void* params[] = {&nowhere, &value, &count};
  WriteToTest(cuMemsetD8_v2(nowhere, 0, 16));
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  static_cast<void>(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  return 0;
}
const bool kFault = AddRole("fault", Fault);

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
  OtherProcess faulty("fault");
  EXPECT_EQ(faulty.Read(), static_cast<uint64_t>(CUDA_ERROR_INVALID_VALUE));
  EXPECT_EQ(faulty.Read(), static_cast<uint64_t>(CUDA_SUCCESS));
  const CUdeviceptr memory = Alloc(4096);
  ASSERT_CU(Launch("slow", {}));
  faulty.Write(1);
  EXPECT_EQ(faulty.Read(), static_cast<uint64_t>(CUDA_ERROR_ILLEGAL_ADDRESS));
  ASSERT_CU(Fill(memory, 3, 1));
  EXPECT_EQ(Read32(memory), 3u);
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
  EXPECT_EQ(info_v2(device, &memory), NVML_ERROR_FUNCTION_NOT_FOUND);  // of no version
  memory.version = kNvmlMemoryV2 + 1;
  EXPECT_NE(info_v2(device, &memory), NVML_SUCCESS);
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
