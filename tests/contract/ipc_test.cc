// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Memory that goes between processes by a handle of bytes, and memory that comes as a descriptor.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "tests/contract/answers.h"
#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;
constexpr unsigned kLazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

bool Start() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

template <typename T>
void Send(OtherProcess& other, const T& value) {
  static_assert(sizeof(T) % 8 == 0);
  uint64_t parts[sizeof(T) / 8];
  memcpy(parts, &value, sizeof value);
  for (const uint64_t part : parts) other.Write(part);
}

CUipcMemHandle ReceiveHandle() {
  uint64_t parts[8];
  for (uint64_t& part : parts) part = ReadFromTest();
  CUipcMemHandle handle;
  memcpy(&handle, parts, sizeof handle);
  return handle;
}

/// Opens a handle twice, adds one to the first word, tells the answers, closes it twice. Freeing
/// what is to be closed is undefined by the header, and a real driver may do it.
int OpenAndChange() {
  if (!Start()) return 1;
  const CUipcMemHandle handle = ReceiveHandle();
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  WriteToTest(cuIpcOpenMemHandle_v2(&a, handle, kLazy));
  WriteToTest(cuIpcOpenMemHandle(&b, handle, kLazy) == CUDA_SUCCESS && a == b);
  if (!RealDriver() && cuMemFree_v2(a) != CUDA_ERROR_INVALID_VALUE) return 1;
  uint32_t word = 0;
  cuMemcpyDtoH_v2(&word, a, sizeof word);
  ++word;
  cuMemcpyHtoD_v2(a, &word, sizeof word);
  WriteToTest(cuCtxSynchronize());
  size_t bytes = 0;
  cuMemGetAddressRange_v2(&b, &bytes, a + 4);
  WriteToTest(b == a ? bytes : 0);
  ReadFromTest();
  WriteToTest(cuIpcCloseMemHandle(a));
  const CUresult once_more = cuMemcpyDtoH_v2(&word, a, sizeof word);
  WriteToTest(once_more);
  // What is not open any more is not closed: a real driver reads what the address was.
  const bool still_open = once_more == CUDA_SUCCESS;
  WriteToTest(still_open ? cuIpcCloseMemHandle(a) : CUDA_SUCCESS);
  if (!RealDriver()) WriteToTest(cuIpcCloseMemHandle(a));
  ReadFromTest();
  return 0;
}
const bool kOpen = AddRole("open", OpenAndChange);

class Ipc : public ContextTest {};

TEST_F(Ipc, AnotherProcessOpensABlock) {
  const CUdeviceptr first = Alloc(512);
  const CUdeviceptr block = Alloc(100 * 1024);  // not at a page
  ASSERT_CU(Fill(block, 20, 1));
  ASSERT_CU(cuCtxSynchronize());
  CUipcMemHandle handle;
  ASSERT_CU(cuIpcGetMemHandle(&handle, block));
  OtherProcess other("open");
  Send(other, handle);
  ASSERT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(other.Read(), 1u) << "opened twice, at one address";
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  const uint64_t bytes = other.Read();
  EXPECT_TRUE(bytes == 100u * 1024 || (RealDriver() && bytes > 100u * 1024)) << bytes;
  EXPECT_EQ(Read32(block), 21u);
  ExpectCounted("ipc", {100 * 1024, 0}, other.pid());
  ExpectCounted("sync", {0, 0}, other.pid());
  other.Write(1);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  const auto once_more = static_cast<CUresult>(other.Read());
  Answer("opened_twice_and_closed_once", NameOf(once_more));
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  if (!RealDriver()) {
    EXPECT_NE(other.Read(), CUDA_SUCCESS) << "closed more often than opened";
  }
  ExpectCounted("ipc", {0, 0}, other.pid());
  other.Write(1);
  EXPECT_EQ(other.Join(), 0);
  ASSERT_CU(cuMemFree_v2(first));
  ASSERT_CU(cuMemFree_v2(block));
}

TEST_F(Ipc, OnlyBlocksOfCuMemAllocAreShared) {
  CUipcMemHandle handle;
  CUdeviceptr pooled = 0;
  CUdeviceptr managed = 0;
  ASSERT_CU(cuMemAllocAsync(&pooled, 4096, nullptr));
  ASSERT_CU(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  const size_t unit = Granularity();
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle physical = 0;
  CUdeviceptr mapped = 0;
  ASSERT_CU(cuMemCreate(&physical, unit, &prop, 0));
  ASSERT_CU(cuMemAddressReserve(&mapped, unit, 0, 0, 0));
  ASSERT_CU(cuMemMap(mapped, unit, 0, physical, 0));
  for (const CUdeviceptr p : {pooled, managed, mapped, CUdeviceptr{4096}}) {
    EXPECT_EQ(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_INVALID_VALUE) << p;
  }
  ASSERT_CU(cuMemUnmap(mapped, unit));
  ASSERT_CU(cuMemAddressFree(mapped, unit));
  ASSERT_CU(cuMemRelease(physical));
  ASSERT_CU(cuMemFreeAsync(pooled, nullptr));
  ASSERT_CU(cuMemFree_v2(managed));
}

TEST_F(Ipc, BadHandlesAreRefused) {
  const CUdeviceptr block = Alloc(4096);
  CUipcMemHandle handle;
  ASSERT_CU(cuIpcGetMemHandle(&handle, block));
  CUdeviceptr none = 0;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&none, handle, kLazy), CUDA_ERROR_INVALID_CONTEXT);  // its own
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&none, handle, 0), CUDA_ERROR_INVALID_VALUE);
  CUipcMemHandle garbage;
  memset(&garbage, 0x5a, sizeof garbage);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&none, garbage, kLazy), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcCloseMemHandle(block), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFree_v2(block));
}

/// Makes a block, tells its handle, and waits to be killed.
int MakeAndWait() {
  CUdeviceptr block = 0;
  CUipcMemHandle handle;
  if (!Start() || cuMemAlloc_v2(&block, kMiB) != CUDA_SUCCESS ||
      cuIpcGetMemHandle(&handle, block) != CUDA_SUCCESS) {
    return 1;
  }
  uint64_t parts[8];
  memcpy(parts, &handle, sizeof handle);
  for (const uint64_t part : parts) WriteToTest(part);
  ReadFromTest();
  return 0;
}
const bool kMake = AddRole("make", MakeAndWait);

TEST_F(Ipc, WhoHasItOpenKeepsADeadProcesssMemory) {
  const size_t before = FreeBytes();
  CUdeviceptr opened = 0;
  CUipcMemHandle handle;
  {
    OtherProcess other("make");
    uint64_t parts[8];
    for (uint64_t& part : parts) part = other.Read();
    memcpy(&handle, parts, sizeof handle);
    ASSERT_CU(cuIpcOpenMemHandle_v2(&opened, handle, kLazy));
    ASSERT_CU(Fill(opened, 6, 4));
    ASSERT_CU(cuCtxSynchronize());
  }
  EXPECT_EQ(Read32(opened + 12), 6u);
  if (!RealDriver()) {
    EXPECT_LT(FreeBytes(), before);
  }
  // Whoever has it open gets it again.
  CUdeviceptr again = 0;
  EXPECT_CU(cuIpcOpenMemHandle_v2(&again, handle, kLazy));
  EXPECT_EQ(again, opened);
  ASSERT_CU(cuIpcCloseMemHandle(opened));
  EXPECT_EQ(Read32(opened + 12), 6u);
  ASSERT_CU(cuIpcCloseMemHandle(opened));
  const CUresult late = cuIpcOpenMemHandle_v2(&again, handle, kLazy);
  AnswerIf("opened_first_after_its_maker_died", late == CUDA_SUCCESS);
  if (late == CUDA_SUCCESS) {
    EXPECT_CU(cuIpcCloseMemHandle(again));
  }
  EXPECT_TRUE(Eventually([&] { return FreeBytes() + Slack() >= before; }));
}

class External : public ContextTest {
 protected:
  int Exported(size_t bytes) {
    const CUmemAllocationProp prop = DeviceMemory();
    CUmemGenericAllocationHandle handle = 0;
    int fd = -1;
    EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0));
    EXPECT_CU(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_CU(cuMemRelease(handle));
    return fd;
  }
  static CUDA_EXTERNAL_MEMORY_HANDLE_DESC Describe(int fd, size_t bytes) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor{};
    descriptor.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    descriptor.handle.fd = fd;
    descriptor.size = bytes;
    return descriptor;
  }
};

TEST_F(External, ADescriptorBecomesABuffer) {
  const size_t before = FreeBytes();
  const size_t unit = Granularity();
  const int fd = Exported(2 * unit);
  const CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = Describe(fd, 2 * unit);
  CUexternalMemory memory = nullptr;
  ASSERT_CU(cuImportExternalMemory(&memory, &descriptor));
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);  // the driver's now
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC all{};
  all.size = 2 * unit;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC half{};
  half.offset = unit;
  half.size = unit;
  CUdeviceptr whole = 0;
  CUdeviceptr second = 0;
  ASSERT_CU(cuExternalMemoryGetMappedBuffer(&whole, memory, &all));
  ASSERT_CU(cuExternalMemoryGetMappedBuffer(&second, memory, &half));
  ASSERT_CU(Fill(second, 8, 4));
  EXPECT_EQ(Read32(whole + unit + 12), 8u);
  ExpectCounted("external", {3 * unit, 0});
  half.size = unit + 1;
  CUdeviceptr none = 0;
  EXPECT_EQ(cuExternalMemoryGetMappedBuffer(&none, memory, &half), CUDA_ERROR_INVALID_VALUE);
  if (RealDriver()) {  // by the header the buffers go first
    EXPECT_CU(cuMemFree_v2(whole));
    EXPECT_CU(cuMemFree_v2(second));
    EXPECT_CU(cuDestroyExternalMemory(memory));
  } else {
    ASSERT_CU(cuDestroyExternalMemory(memory));
    EXPECT_EQ(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(FreeBytes(), before - 2 * unit);  // the buffers keep it
    ASSERT_CU(cuMemFree_v2(whole));
    ASSERT_CU(cuMemFree_v2(second));
  }
  EXPECT_GE(FreeBytes() + Slack(), before);
  ExpectCounted("external", {0, 0});
}

TEST_F(External, OtherDescriptorsAreRefused) {
  CUexternalMemory memory = nullptr;
  const int null = open("/dev/null", O_RDWR);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = Describe(null, 4096);
  EXPECT_EQ(cuImportExternalMemory(&memory, &descriptor), CUDA_ERROR_UNKNOWN);
  const bool kept = fcntl(null, F_GETFD) == 0;
  AnswerIf("a_descriptor_that_is_refused_stays_open", kept);
  if (kept) close(null);
}

TEST_F(External, MoreThanThereIs) {
  CUexternalMemory memory = nullptr;
  const int fd = Exported(Granularity());
  const CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor = Describe(fd, Granularity() + 1);
  const CUresult result = cuImportExternalMemory(&memory, &descriptor);
  Answer("importing_more_than_there_is", NameOf(result));
  if (result == CUDA_SUCCESS) {
    EXPECT_CU(cuDestroyExternalMemory(memory));
  } else if (fcntl(fd, F_GETFD) == 0) {
    close(fd);
  }
}

}  // namespace
}  // namespace sluice::contract
