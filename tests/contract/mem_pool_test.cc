// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Memory pools as objects; what they do in stream order is in pool_test.cc.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;
/// A real driver's pool takes pieces of this size of the GPU.
const size_t kPiece = RealDriver() ? 32 * kMiB : kMiB;
constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemPoolProps Props(CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE,
                     size_t max_size = 0) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = handles;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  props.maxSize = max_size;
  return props;
}

class MemPool : public ContextTest {
 protected:
  CUmemoryPool Create(const CUmemPoolProps& props = Props()) {
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  CUdeviceptr AllocFrom(CUmemoryPool pool, size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_CU(cuMemAllocFromPoolAsync(&pointer, bytes, pool, nullptr));
    return pointer;
  }
  uint64_t Bytes(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = 99;
    EXPECT_CU(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
  }
};

TEST_F(MemPool, PoolsAreApart) {
  const size_t before = FreeBytes();
  const CUmemoryPool a = Create();
  const CUmemoryPool b = Create();
  EXPECT_NE(a, b);
  const CUdeviceptr x = AllocFrom(a, kMiB);
  EXPECT_EQ(Bytes(a, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  EXPECT_EQ(Bytes(b, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_LE(FreeBytes() + kPiece, before + Slack());
  ASSERT_CU(Fill(x, 7, 16));
  EXPECT_EQ(Read32(x), 7u);
  ASSERT_CU(cuMemFreeAsync(x, nullptr));
  // What one pool keeps is not there for another.
  const CUdeviceptr y = AllocFrom(b, kMiB);
  EXPECT_NE(x, y);
  EXPECT_EQ(Bytes(a, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kPiece);
  ASSERT_CU(cuMemFreeAsync(y, nullptr));
  ASSERT_CU(cuMemPoolDestroy(a));
  ASSERT_CU(cuMemPoolDestroy(b));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_GE(FreeBytes() + Slack(), before);
}

TEST_F(MemPool, AThresholdBelongsToItsPool) {
  const CUmemoryPool keeping = Create();
  const CUmemoryPool plain = Create();
  cuuint64_t keep = 8 * kPiece;
  ASSERT_CU(cuMemPoolSetAttribute(keeping, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  EXPECT_EQ(Bytes(keeping, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 8 * kPiece);
  for (const CUmemoryPool pool : {keeping, plain}) {
    ASSERT_CU(cuMemFreeAsync(AllocFrom(pool, 2 * kPiece), nullptr));
  }
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Bytes(keeping, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * kPiece);
  EXPECT_EQ(Bytes(plain, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  if (!RealDriver()) {  // it fills the GPU
    // cuMemAlloc may take what pools only keep.
    CUdeviceptr all = 0;
    ASSERT_CU(cuMemAlloc_v2(&all, FreeBytes() + kMiB));
    EXPECT_EQ(Bytes(keeping, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
    ASSERT_CU(cuMemFree_v2(all));
  }
  ASSERT_CU(cuMemPoolDestroy(keeping));
  ASSERT_CU(cuMemPoolDestroy(plain));
}

TEST_F(MemPool, ADestroyedPoolLivesUntilItsLastFree) {
  const size_t before = FreeBytes();
  const CUmemoryPool pool = Create();
  const CUdeviceptr a = AllocFrom(pool, kMiB);
  ASSERT_CU(cuMemPoolDestroy(pool));
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&none, kMiB, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(Fill(a, 5, 4));
  EXPECT_EQ(Read32(a), 5u);
  EXPECT_LE(FreeBytes() + kPiece, before + Slack());
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_GE(FreeBytes() + Slack(), before);
  ExpectCounted("async", {0, 0});
}

TEST_F(MemPool, TheCurrentPoolServesAsyncAllocations) {
  CUmemoryPool standard = nullptr;
  CUmemoryPool now = nullptr;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  ASSERT_CU(cuMemGetDefaultMemPool(&now, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(now, standard);
  EXPECT_EQ(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
  const CUmemoryPool own = Create();
  ASSERT_CU(cuDeviceSetMemPool(0, own));
  ASSERT_CU(cuMemGetMemPool(&now, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(now, own);
  CUdeviceptr a = 0;
  ASSERT_CU(cuMemAllocAsync(&a, kMiB, nullptr));
  EXPECT_EQ(Bytes(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  ASSERT_CU(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
  ASSERT_CU(cuDeviceGetMemPool(&now, 0));
  EXPECT_EQ(now, standard);
  ASSERT_CU(cuDeviceSetMemPool(0, own));
  ASSERT_CU(cuMemPoolDestroy(own));  // makes the default one current again
  ASSERT_CU(cuDeviceGetMemPool(&now, 0));
  EXPECT_EQ(now, standard);
}

TEST_F(MemPool, AttributesHaveTheHeadersRules) {
  const CUmemoryPool pool = Create();
  for (const auto reuse :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    int value = -1;
    ASSERT_CU(cuMemPoolGetAttribute(pool, reuse, &value));
    EXPECT_EQ(value, 1) << reuse;  // on by default
    value = 0;
    ASSERT_CU(cuMemPoolSetAttribute(pool, reuse, &value));
    value = -1;
    ASSERT_CU(cuMemPoolGetAttribute(pool, reuse, &value));
    EXPECT_EQ(value, 0) << reuse;
  }
  cuuint64_t value = 0;
  for (const auto fixed :
       {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT}) {
    EXPECT_EQ(cuMemPoolSetAttribute(pool, fixed, &value), CUDA_ERROR_INVALID_VALUE) << fixed;
  }
  ASSERT_CU(cuMemFreeAsync(AllocFrom(pool, kMiB), nullptr));
  EXPECT_EQ(Bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), kPiece);
  EXPECT_EQ(Bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), kMiB);
  for (const auto high : {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH}) {
    value = 1;
    EXPECT_EQ(cuMemPoolSetAttribute(pool, high, &value), CUDA_ERROR_INVALID_VALUE) << high;
    value = 0;
    EXPECT_CU(cuMemPoolSetAttribute(pool, high, &value));
  }
  EXPECT_EQ(Bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
  EXPECT_EQ(Bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), kPiece);  // still reserved
  EXPECT_EQ(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(15), &value),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolGetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemPoolDestroy(pool));
}

TEST_F(MemPool, MaximumSizeAndCapacityAreRefusals) {
  OnlySimulated("it fills a GPU whose size it knows");
  const CUmemoryPool small = Create(Props(CU_MEM_HANDLE_TYPE_NONE, 2 * kMiB));
  const CUdeviceptr a = AllocFrom(small, kMiB);
  CUdeviceptr b = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 2 * kMiB, small, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemAllocFromPoolAsync(&b, kMiB, small, nullptr));
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  ASSERT_CU(cuMemFreeAsync(b, nullptr));
  ASSERT_CU(cuMemPoolDestroy(small));
  const CUmemoryPool pool = Create();
  EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 80 * kMiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemPoolDestroy(pool));
}

TEST_F(MemPool, AccessAndPropertiesAreChecked) {
  const CUmemoryPool pool = Create();
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, 1};
  ASSERT_CU(cuMemPoolGetAccess(&flags, pool, &here));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  int count = 0;
  ASSERT_CU(cuDeviceGetCount(&count));
  there.id = count;
  EXPECT_EQ(cuMemPoolGetAccess(&flags, pool, &there), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access = ReadWrite();
  EXPECT_CU(cuMemPoolSetAccess(pool, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_NE(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
  ASSERT_CU(cuMemPoolDestroy(pool));

  CUmemoryPool none = nullptr;
  CUmemPoolProps props = Props();
  props.location.id = count;
  EXPECT_NE(cuMemPoolCreate(&none, &props), CUDA_SUCCESS);
  props = Props();
  props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  EXPECT_NE(cuMemPoolCreate(&none, &props), CUDA_SUCCESS);
  props = Props();
  props.reserved[5] = 1;
  EXPECT_EQ(cuMemPoolCreate(&none, &props), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolCreate(nullptr, &props), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemPool, EachContextHasItsPart) {
  const CUmemoryPool pool = Create();
  const CUdeviceptr a = AllocFrom(pool, kMiB);
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  const CUdeviceptr b = AllocFrom(pool, 2 * kMiB);
  EXPECT_EQ(Bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * kMiB);
  ASSERT_CU(cuMemsetD32_v2(b, 3, 4));
  EXPECT_EQ(Read32(b), 3u);
  EXPECT_CU(cuMemFree_v2(a));  // of another context than the current one
  AnswerIf("a_block_of_another_context_is_freed_at_once",
           Bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2 * kMiB);
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuCtxSynchronize());
  AnswerIf("a_pools_block_ends_with_the_context_it_was_made_in",
           Bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  ASSERT_CU(cuMemPoolDestroy(pool));
  ASSERT_CU(cuCtxSynchronize());
  ExpectCounted("async", {0, 0});
}

/// Imports the pool that is passed and the pointer whose data comes in eight numbers; adds one to
/// its first word; frees it when told to.
int ImportPool() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  CUmemoryPool pool = nullptr;
  if (cuMemPoolImportFromShareableHandle(
          &pool, reinterpret_cast<void*>(static_cast<intptr_t>(kPassedFd)), kFd, 0) != 0) {
    return 1;
  }
  close(kPassedFd);
  CUdeviceptr pointer = 0;
  if (cuMemAllocFromPoolAsync(&pointer, 512, pool, nullptr) == CUDA_SUCCESS) return 1;
  if (cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS) return 1;
  CUmemPoolPtrExportData data{};
  for (size_t i = 0; i < sizeof data; i += 8) {
    const uint64_t part = ReadFromTest();
    memcpy(data.reserved + i, &part, 8);
  }
  CUmemPoolPtrExportData wrong = data;
  wrong.reserved[8] ^= 1;
  // A real driver may take the data as it comes.
  if (!RealDriver() && cuMemPoolImportPointer(&pointer, pool, &wrong) != CUDA_ERROR_INVALID_VALUE) {
    return 1;
  }
  if (cuMemPoolImportPointer(&pointer, pool, &data) != CUDA_SUCCESS) return 1;
  uint32_t word = 0;
  cuMemcpyDtoH_v2(&word, pointer, sizeof word);
  ++word;
  cuMemcpyHtoD_v2(pointer, &word, sizeof word);
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  WriteToTest(cuMemFreeAsync(pointer, nullptr));
  ReadFromTest();
  return 0;
}
const bool kImport = AddRole("import-pool", ImportPool);

TEST_F(MemPool, PointersGoBetweenProcesses) {
  const CUmemoryPool pool = Create(Props(kFd));
  const CUdeviceptr first = AllocFrom(pool, 700);
  const CUdeviceptr second = AllocFrom(pool, 700);  // not at a page
  ASSERT_CU(Fill(second, 10, 1));
  ASSERT_CU(cuCtxSynchronize());
  int fd = -1;
  ASSERT_CU(cuMemPoolExportToShareableHandle(&fd, pool, kFd, 0));
  OtherProcess other("import-pool", fd);
  close(fd);
  CUmemPoolPtrExportData data;
  ASSERT_CU(cuMemPoolExportPointer(&data, second));
  for (size_t i = 0; i < sizeof data; i += 8) {
    uint64_t part = 0;
    memcpy(&part, data.reserved + i, 8);
    other.Write(part);
  }
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(Read32(second), 11u);
  ExpectCounted("ipc", {1024, 0}, other.pid());
  ExpectCounted("async", {0, 0}, other.pid());
  other.Write(1);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  ExpectCounted("ipc", {0, 0}, other.pid());
  ASSERT_CU(cuMemFreeAsync(first, nullptr));
  ASSERT_CU(cuMemFreeAsync(second, nullptr));
  ASSERT_CU(cuMemPoolDestroy(pool));
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(MemPool, OnlyPoolsMadeForItAreExported) {
  const CUmemoryPool pool = Create();
  int fd = -1;
  EXPECT_EQ(cuMemPoolExportToShareableHandle(&fd, pool, kFd, 0), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr a = AllocFrom(pool, 512);
  CUmemPoolPtrExportData data;
  EXPECT_EQ(cuMemPoolExportPointer(&data, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolExportPointer(&data, Alloc(512)), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  CUmemoryPool imported = nullptr;
  fd = open("/dev/null", O_RDWR);
  EXPECT_EQ(cuMemPoolImportFromShareableHandle(
                &imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kFd, 0),
            CUDA_ERROR_UNKNOWN);
  close(fd);
  ASSERT_CU(cuMemPoolDestroy(pool));
}

}  // namespace
}  // namespace sluice::contract
