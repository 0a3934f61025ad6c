// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Several GPUs of one machine: which there are, and what belongs to which.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "tests/contract/nvml.h"
#include "tests/contract/peers_fixture.h"

namespace sluice::contract {
namespace {

const bool kTwo = NeedGpus("2");

using Devices = PeersTest;

/// As NVML and CUDA_VISIBLE_DEVICES write it.
std::string UuidText(int gpu) {
  CUuuid uuid{};
  EXPECT_CU(cuDeviceGetUuid_v2(&uuid, gpu));
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += digits;
  }
  return text;
}

TEST_F(Devices, AreTold) {
  int count = 0;
  ASSERT_CU(cuDeviceGetCount(&count));
  EXPECT_NE(UuidText(0), UuidText(1));
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  std::string ids[2];
  for (int gpu : {0, 1}) {
    char id[32] = {};
    int bus = -1;
    ASSERT_CU(cuDeviceGet(&device, gpu));
    ASSERT_CU(cuDeviceGetPCIBusId(id, sizeof id, device));
    ASSERT_CU(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
    EXPECT_EQ(strtol(id + 5, nullptr, 16), bus) << id;
    CUdevice found = -1;
    ASSERT_CU(cuDeviceGetByPCIBusId(&found, id));
    EXPECT_EQ(found, device);
    ids[gpu] = id;
  }
  EXPECT_NE(ids[0], ids[1]);
}

// One finds out by it which context to make current.
TEST_F(Devices, AStreamTellsWhereItIsFromAnywhere) {
  CUstream stream = nullptr;
  Use(1);
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const CUcontext current : {context_[1], context_[0]}) {
    ASSERT_CU(cuCtxSetCurrent(current));
    CUcontext its = nullptr;
    ASSERT_CU(cuStreamGetCtx(stream, &its));
    EXPECT_EQ(its, context_[1]);
    ASSERT_CU(cuStreamGetCtx(nullptr, &its));
    EXPECT_EQ(its, current);
  }
  CUdevice device = -1;
  ASSERT_CU(cuStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 1);
  Use(1);
  ASSERT_CU(cuStreamDestroy_v2(stream));
}

TEST_F(Devices, LaunchOnAllWithOneCall) {
  OnlySimulated("a device may be unable to take part");
  CUdeviceptr memory[2] = {};
  uint32_t value[2] = {7, 8};
  uint64_t count = 4;
  void* params[2][3] = {};
  CUDA_LAUNCH_PARAMS launches[2] = {};
  for (const int gpu : {1, 0}) {
    memory[gpu] = Alloc(gpu);
    params[gpu][0] = &memory[gpu];
    params[gpu][1] = &value[gpu];
    params[gpu][2] = &count;
    CUDA_LAUNCH_PARAMS& one = launches[gpu];
    one = {nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, params[gpu]};
    ASSERT_CU(cuModuleGetFunction(&one.function, module_[gpu], "fill"));
    ASSERT_CU(cuStreamCreate(&one.hStream, CU_STREAM_NON_BLOCKING));
  }
  ASSERT_CU(cuLaunchCooperativeKernelMultiDevice(launches, 2, 0));
  for (const int gpu : {1, 0}) {
    Use(gpu);
    ASSERT_CU(cuStreamSynchronize(launches[gpu].hStream));
    uint32_t seen = 0;
    ASSERT_CU(cuMemcpyDtoH_v2(&seen, memory[gpu] + 12, sizeof seen));
    EXPECT_EQ(seen, value[gpu]);
    ASSERT_CU(cuStreamDestroy_v2(launches[gpu].hStream));
    Free(gpu, memory[gpu]);
  }
  launches[1].hStream = launches[0].hStream = nullptr;
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(launches, 2, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, HaveContextsAndMemoryOfTheirOwn) {
  size_t before[2] = {};
  size_t after[2] = {};
  size_t total = 0;
  for (int gpu : {0, 1}) {
    Use(gpu);
    CUdevice device = -1;
    ASSERT_CU(cuCtxGetDevice(&device));
    EXPECT_EQ(device, gpu);
    ASSERT_CU(cuMemGetInfo_v2(&before[gpu], &total));
  }
  const CUdeviceptr memory = Alloc(1, 8u << 20);
  for (int gpu : {0, 1}) {
    Use(gpu);
    ASSERT_CU(cuMemGetInfo_v2(&after[gpu], &total));
  }
  EXPECT_EQ(after[0], before[0]);
  EXPECT_LT(after[1], before[1]);
  for (const int current : {0, 1}) {
    Use(current);
    int ordinal = -1;
    CUcontext owner = nullptr;
    ASSERT_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
    EXPECT_EQ(ordinal, 1);
    ASSERT_CU(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
    EXPECT_EQ(owner, context_[1]);
    void* data[] = {&ordinal};
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    ordinal = -1;
    ASSERT_CU(cuPointerGetAttributes(1, asked, data, memory));
    EXPECT_EQ(ordinal, 1);
  }
  Free(1, memory);
  unsigned flags = 0;
  int active = 0;
  ASSERT_CU(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 1);
}

TEST_F(Devices, AreFullOneByOne) {
  OnlySimulated("it fills a GPU of 64 MiB");
  constexpr size_t kMuch = 40u << 20;
  const CUdeviceptr first = Alloc(0, kMuch);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, kMuch), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr second = Alloc(1, kMuch);
  EXPECT_EQ(cuMemAlloc_v2(&more, kMuch), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_GE(Stat("memory_used", 0), kMuch);
  EXPECT_GE(Stat("memory_used", 1), kMuch);
  Free(0, first);
  Free(1, second);
}

// A pool and a graph's allocation lie on the GPU of the context that asks.
TEST_F(Devices, HavePoolsOfTheirOwn) {
  CUmemoryPool pool[2] = {};
  for (int gpu : {0, 1}) ASSERT_CU(cuDeviceGetDefaultMemPool(&pool[gpu], gpu));
  EXPECT_NE(pool[0], pool[1]);
  for (int gpu : {0, 1}) {
    Use(gpu);
    CUdeviceptr memory = 0;
    ASSERT_CU(cuMemAllocAsync(&memory, kBytes, nullptr));
    int ordinal = -1;
    ASSERT_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
    EXPECT_EQ(ordinal, gpu);
    cuuint64_t used[2] = {};
    for (int i : {0, 1}) {
      ASSERT_CU(cuMemPoolGetAttribute(pool[i], CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used[i]));
    }
    EXPECT_EQ(used[gpu], kBytes);
    EXPECT_EQ(used[1 - gpu], 0u);
    ASSERT_CU(cuMemFreeAsync(memory, nullptr));
    ASSERT_CU(cuCtxSynchronize());
  }
}

TEST_F(Devices, WaitForEachOthersEvents) {
  Use(1);
  void* host = nullptr;
  ASSERT_CU(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  auto* flag = static_cast<volatile uint64_t*>(host);
  *flag = 0;
  CUevent event = nullptr;
  CUstream first = nullptr;
  CUstream second = nullptr;
  ASSERT_CU(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamWaitValue64_v2(first, reinterpret_cast<CUdeviceptr>(host), 1,
                                   CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventCreate(&event, 0));
  ASSERT_CU(cuEventRecord(event, first));
  const CUdeviceptr memory = Alloc(0);
  ASSERT_CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamWaitEvent(second, event, 0));
  ASSERT_CU(cuMemsetD32Async(memory, 9, kWords, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);  // from the other GPU's context
  *flag = 1;
  ASSERT_CU(cuStreamSynchronize(second));
  EXPECT_CU(cuEventQuery(event));
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_EQ(Read(0, memory), All(9));
  // An event is recorded where it was made, and times of two GPUs cannot be compared.
  EXPECT_EQ(cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);
  CUevent own = nullptr;
  Use(0);
  ASSERT_CU(cuEventCreate(&own, 0));
  ASSERT_CU(cuEventRecord(own, second));
  ASSERT_CU(cuEventSynchronize(own));
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, event, own), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(cuEventDestroy_v2(own));
  ASSERT_CU(cuStreamDestroy_v2(second));
  Free(0, memory);
  Use(1);
  ASSERT_CU(cuEventDestroy_v2(event));
  ASSERT_CU(cuStreamDestroy_v2(first));
  ASSERT_CU(cuMemFreeHost(host));
}

/// Tells how many GPUs it sees, and of each the first byte of its UUID; 0 GPUs for the driver's
/// "no device".
int See() {
  int count = 0;
  if (cuInit(0) == CUDA_SUCCESS) cuDeviceGetCount(&count);
  WriteToTest(static_cast<uint64_t>(count));
  for (int gpu = 0; gpu < count; ++gpu) {
    CUuuid uuid{};
    cuDeviceGetUuid_v2(&uuid, gpu);
    uint64_t begin = 0;
    memcpy(&begin, uuid.bytes, sizeof begin);
    WriteToTest(begin);
  }
  return 0;
}
const bool kSee = AddRole("see", See);

std::vector<uint64_t> Seen(const std::string& visible) {
  setenv("CUDA_VISIBLE_DEVICES", visible.c_str(), 1);
  OtherProcess other("see");
  unsetenv("CUDA_VISIBLE_DEVICES");
  std::vector<uint64_t> seen(other.Read());
  for (uint64_t& gpu : seen) gpu = other.Read();
  return seen;
}

TEST_F(Devices, AreHiddenAndOrderedByTheEnvironment) {
  if (getenv("CUDA_VISIBLE_DEVICES") != nullptr) GTEST_SKIP() << "the environment hides some";
  uint64_t begin[2] = {};
  for (int gpu : {0, 1}) {
    CUuuid uuid{};
    ASSERT_CU(cuDeviceGetUuid_v2(&uuid, gpu));
    memcpy(&begin[gpu], uuid.bytes, sizeof begin[gpu]);
  }
  using Gpus = std::vector<uint64_t>;
  EXPECT_EQ(Seen("1"), Gpus{begin[1]});
  EXPECT_EQ(Seen("1,0"), (Gpus{begin[1], begin[0]}));
  EXPECT_EQ(Seen("0,99,1"), Gpus{begin[0]});
  EXPECT_EQ(Seen("-1"), Gpus{});
  EXPECT_EQ(Seen(UuidText(1)), Gpus{begin[1]});
}

TEST_F(Devices, AreThoseOfTheManagementLibrary) {
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  unsigned count = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_GE(count, 2u);
  const CUdeviceptr memory = Alloc(1, 16u << 20);
  nvmlMemory_t used[2] = {};
  for (int gpu : {0, 1}) {
    // Numbers may differ from the driver's: UUIDs and bus ids do not.
    nvmlDevice_t device = nullptr;
    nvmlDevice_t same = nullptr;
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByUUID)(UuidText(gpu).c_str(), &device), NVML_SUCCESS);
    nvmlPciInfo_t pci{};
    ASSERT_EQ(NVML(nvmlDeviceGetPciInfo_v3)(device, &pci), NVML_SUCCESS);
    char id[32] = {};
    ASSERT_CU(cuDeviceGetPCIBusId(id, sizeof id, gpu));
    EXPECT_STRCASEEQ(pci.busIdLegacy, id);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &same), NVML_SUCCESS);
    EXPECT_EQ(same, device);
    unsigned index = 99;
    ASSERT_EQ(NVML(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &same), NVML_SUCCESS);
    EXPECT_EQ(same, device);
    ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device, &used[gpu]), NVML_SUCCESS);
    nvmlProcessInfo_v2_t programs[64];
    unsigned programs_count = 64;
    ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &programs_count, programs),
              NVML_SUCCESS);
    if (!RealDriver()) {  // there it may tell ids of another namespace
      ASSERT_EQ(programs_count, 1u);
      EXPECT_EQ(programs[0].pid, static_cast<unsigned>(getpid()));
      EXPECT_EQ(programs[0].usedGpuMemory >= (16u << 20), gpu == 1);
    }
  }
  EXPECT_GE(used[1].used, 16u << 20);
  if (!RealDriver()) {
    EXPECT_LT(used[0].used, 16u << 20);
  }
  nvmlDevice_t none = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(count, &none), NVML_ERROR_INVALID_ARGUMENT);
  Free(1, memory);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

}  // namespace
}  // namespace sluice::contract
