// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <poll.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

class Memory : public ContextTest {};

TEST_F(Memory, CapacityIsEnforcedAndGivenBack) {
  OnlySimulated("it fills a GPU whose size it knows");
  const size_t before = FreeBytes();
  CUdeviceptr big = 0;
  EXPECT_EQ(cuMemAlloc_v2(&big, 80 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemAlloc_v2(&big, 40 * kMiB));
  EXPECT_EQ(FreeBytes(), before - 40 * kMiB);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, 40 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemFree_v2(big));
  EXPECT_EQ(FreeBytes(), before);
  ASSERT_CU(cuMemAlloc_v2(&more, 40 * kMiB));
  ASSERT_CU(cuMemFree_v2(more));
}

TEST_F(Memory, SmallBlocksShareChunks) {
  const size_t before = FreeBytes();
  const CUdeviceptr a = Alloc(100);
  const CUdeviceptr b = Alloc(100);
  EXPECT_NE(a, b);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_LE(before - FreeBytes(), Granularity() + Slack());
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_CU(cuMemGetAddressRange_v2(&base, &bytes, a + 50));
  EXPECT_EQ(base, a);
  EXPECT_GE(bytes, 100u);
  EXPECT_EQ(cuMemFree_v2(a + 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(a));
  EXPECT_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(b));
  EXPECT_GE(FreeBytes() + Slack(), before);
}

TEST_F(Memory, FreeWaitsForTheGpu) {
  SharedWord word;
  const CUdeviceptr a = Alloc(4096);
  const CUdeviceptr b = Alloc(4096);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(Launch("slow", {}, stream));
  ASSERT_CU(Fill(a, 1, 1, stream));
  ASSERT_CU(cuMemFree_v2(b));
  EXPECT_CU(cuStreamQuery(stream));
  ASSERT_CU(cuMemFree_v2(a));
}

sigjmp_buf g_back;
void OnFault(int) { siglongjmp(g_back, 1); }

TEST_F(Memory, TheHostCannotTouchIt) {
  const CUdeviceptr memory = Alloc(4096);
  struct sigaction old;
  struct sigaction action {};
  action.sa_handler = OnFault;
  sigaction(SIGSEGV, &action, &old);
  volatile bool faulted = true;  // survives the jump
  if (sigsetjmp(g_back, 1) == 0) {
    *reinterpret_cast<volatile char*>(memory) = 1;
    faulted = false;
  }
  sigaction(SIGSEGV, &old, nullptr);
  EXPECT_TRUE(faulted);
}

TEST_F(Memory, MemsetWritesBytesAndWords) {
  const CUdeviceptr memory = Alloc(4096);
  ASSERT_CU(cuMemsetD32_v2(memory, 0xdeadbeef, 1024));
  ASSERT_CU(cuMemsetD8_v2(memory + 4, 0x7f, 2));
  EXPECT_EQ(Read32(memory), 0xdeadbeefu);
  EXPECT_EQ(Read32(memory + 4), 0xdead7f7fu);
  ASSERT_CU(cuMemcpyDtoD_v2(memory + 2048, memory, 8));
  EXPECT_EQ(Read32(memory + 2052), 0xdead7f7fu);
  EXPECT_EQ(cuMemsetD32_v2(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

/// Another process that takes what it is told to and then waits.
int TakeMemory() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  WriteToTest(cuMemAlloc_v2(&memory, ReadFromTest()));
  ReadFromTest();
  return 0;
}
const bool kTake = AddRole("take", TakeMemory);

TEST_F(Memory, ProcessesShareTheCapacity) {
  OnlySimulated("it fills a GPU whose size it knows");
  const size_t before = FreeBytes();
  OtherProcess other("take");
  other.Write(30 * kMiB);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_LE(FreeBytes(), before - 30 * kMiB);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc_v2(&memory, 40 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  other.Kill();
  EXPECT_TRUE(Eventually([&] { return FreeBytes() == before; }));
  ASSERT_CU(cuMemAlloc_v2(&memory, 40 * kMiB));
  ASSERT_CU(cuMemFree_v2(memory));
}

/// Creates a handle, forks a child that inherits it, and waits to be killed.
int ForkAndHold() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  if (cuMemCreate(&handle, ReadFromTest(), &prop, 0) != CUDA_SUCCESS) return 1;
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    // CUDA does not work in a forked child, but what it inherited it holds.
    const bool refused = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    WriteToTest(refused ? 1 : 0);
    for (;;) pause();
  }
  WriteToTest(static_cast<uint64_t>(child));
  ReadFromTest();
  return 0;
}
const bool kForkAndHold = AddRole("fork", ForkAndHold);

TEST_F(Memory, AForkedChildKeepsHandlesAlive) {
  const size_t bytes = (RealDriver() ? 1024 : 16) * kMiB;
  const size_t before = FreeBytes();
  OtherProcess other("fork");
  other.Write(bytes);
  uint64_t a = other.Read();
  uint64_t b = other.Read();
  if (a == 1) std::swap(a, b);
  const auto child = static_cast<pid_t>(a);
  EXPECT_EQ(b, 1u);
  other.Kill();
  other.Join();
  if (RealDriver()) {
    // The child has all of the driver's descriptors, so that the context stays as well: nothing is
    // to be waited for. What others on the GPU do must not count: half of it is enough.
    poll(nullptr, 0, 500);
    EXPECT_LE(FreeBytes() + bytes / 2, before);
  } else {
    // The context goes with the process, the handle with its last holder.
    EXPECT_TRUE(Eventually([&] { return FreeBytes() == before - bytes; }));
  }
  const uint64_t killed = NowNs();
  kill(child, SIGKILL);
  const size_t most = RealDriver() ? bytes / 2 : 0;
  EXPECT_TRUE(Eventually([&] { return FreeBytes() + most >= before; }));
  Measure("last_holder_killed_to_free_ms", static_cast<double>(NowNs() - killed) / 1e6);
}

}  // namespace
}  // namespace sluice::contract
