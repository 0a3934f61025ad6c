// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What simgpu-ctl says a process has of each family of memory.
#include <unistd.h>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;
constexpr size_t kChunk = 64 * 1024;  // granularity in the machine file

class Accounting : public ContextTest {};

TEST_F(Accounting, ACleanProcessHasItsContextAlone) {
  for (const char* family :
       {"sync", "async", "vmm", "array", "managed", "graph", "ipc", "external"}) {
    EXPECT_EQ(CountedBytes(family), (Counted{0, 0})) << family;
  }
  EXPECT_EQ(CountedBytes("context"), (Counted{kMiB, kMiB}));
  CUcontext second = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&second, 0, 0));
  EXPECT_EQ(CountedBytes("context"), (Counted{2 * kMiB, 2 * kMiB}));
  const CUdeviceptr left_behind = Alloc(1000);
  EXPECT_NE(left_behind, 0u);
  EXPECT_EQ(CountedBytes("sync"), (Counted{1000, kChunk}));
  ASSERT_CU(cuCtxDestroy_v2(second));
  EXPECT_EQ(CountedBytes("context"), (Counted{kMiB, kMiB}));
  EXPECT_EQ(CountedBytes("sync"), (Counted{0, 0}));
  ASSERT_CU(cuCtxSetCurrent(context_));
}

TEST_F(Accounting, SyncBytesAreWhatWasAskedFor) {
  const CUdeviceptr a = Alloc(1000);
  const CUdeviceptr b = Alloc(kChunk + 1);
  CUdeviceptr c = 0;
  size_t pitch = 0;
  ASSERT_CU(cuMemAllocPitch_v2(&c, &pitch, 100, 10, 4));
  EXPECT_EQ(CountedBytes("sync").requested, 1000 + kChunk + 1 + 10 * pitch);
  EXPECT_EQ(CountedBytes("sync").held, 2 * kChunk);
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAlloc_v2(&none, 100 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CountedBytes("sync").requested, 1000 + kChunk + 1 + 10 * pitch);
  for (const CUdeviceptr p : {a, b, c}) ASSERT_CU(cuMemFree_v2(p));
  EXPECT_EQ(CountedBytes("sync"), (Counted{0, 0}));
}

TEST_F(Accounting, AReserveIsHeldButNotRequested) {
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, 0));
  CUdeviceptr a = 0;
  ASSERT_CU(cuMemAllocAsync(&a, kMiB + 5, stream));
  EXPECT_EQ(CountedBytes("async"), (Counted{kMiB + 5, kMiB + kChunk}));
  ASSERT_CU(cuMemFreeAsync(a, stream));
  EXPECT_EQ(CountedBytes("async"), (Counted{0, kMiB + kChunk}));
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(CountedBytes("async"), (Counted{0, 0}));
}

/// Imports the handle that is passed and tells what it is charged with.
int ImportAndWait() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  CUmemGenericAllocationHandle handle = 0;
  WriteToTest(cuMemImportFromShareableHandle(
      &handle, reinterpret_cast<void*>(static_cast<intptr_t>(kPassedFd)),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ReadFromTest();
  WriteToTest(cuMemRelease(handle));
  ReadFromTest();
  return 0;
}
const bool kImport = AddRole("import", ImportAndWait);

TEST_F(Accounting, AHandleCountsWithWhoCreatedItAndIsNamedWithWhoImportedIt) {
  OnlySimulated("it reads the counters of simgpu-ctl");
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CU(cuMemCreate(&handle, kMiB, &prop, 0));
  EXPECT_EQ(CountedBytes("vmm"), (Counted{kMiB, kMiB}));
  int fd = -1;
  ASSERT_CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OtherProcess other("import", fd);
  close(fd);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(CountedBytes("ipc", other.pid()), (Counted{kMiB, 0}));
  EXPECT_EQ(CountedBytes("vmm", other.pid()), (Counted{0, 0}));
  other.Write(1);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(CountedBytes("ipc", other.pid()), (Counted{0, 0}));
  ASSERT_CU(cuMemRelease(handle));
  EXPECT_EQ(CountedBytes("vmm"), (Counted{0, 0}));
}

}  // namespace
}  // namespace sluice::contract
