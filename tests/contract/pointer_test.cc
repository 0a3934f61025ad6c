// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

class PointerFacts : public ContextTest {
 protected:
  template <typename T>
  T Get(CUpointer_attribute attribute, CUdeviceptr pointer) {
    T value{};
    EXPECT_CU(cuPointerGetAttribute(&value, attribute, pointer)) << attribute;
    return value;
  }
  void ExpectRange(CUdeviceptr inside, CUdeviceptr base, size_t bytes) {
    EXPECT_EQ(Get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside), base);
    EXPECT_EQ(Get<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside), bytes);
    EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, inside), 1u);
    EXPECT_EQ(Get<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside), 0);
    EXPECT_EQ(Get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside), inside);
  }
};

TEST_F(PointerFacts, OfPlainMemory) {
  const CUdeviceptr a = Alloc(1024);
  const CUdeviceptr b = Alloc(1024);
  ExpectRange(a + 100, a, 1024);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(Get<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, a), context_);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, a), 0u);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a), 1u);
  EXPECT_EQ(Get<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a), 0u);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a),
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(Get<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a), nullptr);
  const auto id = [&](CUdeviceptr p) {
    return Get<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
  };
  EXPECT_EQ(id(a), id(a + 1023));
  EXPECT_NE(id(a), id(b));
  const unsigned long long first = id(a);
  CUdeviceptr host = 0;
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFree_v2(a));
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a),
            CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr again = Alloc(1024);
  EXPECT_EQ(again, a);
  EXPECT_NE(id(again), first);  // another buffer at the same address
  ASSERT_CU(cuMemFree_v2(again));
  ASSERT_CU(cuMemFree_v2(b));
}

TEST_F(PointerFacts, AnotherContextsMemoryIsKnownToo) {
  const CUdeviceptr a = Alloc(1024);
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_EQ(Get<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, a), context_);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_CU(cuMemGetAddressRange_v2(&base, &bytes, a + 8));
  EXPECT_EQ(base, a);
  ASSERT_CU(cuMemFree_v2(a));
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
}

TEST_F(PointerFacts, OfPoolMemory) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  CUdeviceptr a = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&a, 2048, pool, nullptr));
  ExpectRange(a + 5, a, 2048);
  EXPECT_EQ(Get<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a), pool);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a), 0u);
  EXPECT_EQ(Get<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a), 1u);
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  ASSERT_CU(cuMemPoolDestroy(pool));
}

TEST_F(PointerFacts, OfMappedHandles) {
  const size_t unit = Granularity();
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemCreate(&handle, unit, &prop, 0));
  ASSERT_CU(cuMemAddressReserve(&at, 2 * unit, 0, 0, 0));
  ASSERT_CU(cuMemMap(at, unit, 0, handle, 0));
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at), 0u);
  const CUmemAccessDesc access = ReadWrite();
  ASSERT_CU(cuMemSetAccess(at, unit, &access, 1));
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at), 3u);
  // The range is what was reserved, the mapping what lies there.
  ExpectRange(at + 4, at, 2 * unit);
  EXPECT_EQ(Get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at + 4), at);
  EXPECT_EQ(Get<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at + 4), unit);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_CU(cuMemGetAddressRange_v2(&base, &bytes, at + 4));
  Answer("address_range_of_a_mapping", bytes == unit       ? "the mapping"
                                       : bytes == 2 * unit ? "the reservation"
                                                           : std::to_string(bytes));
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at), 0u);
  EXPECT_EQ(Get<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at), 1u);
  unsigned value = 0;
  const CUresult beside = cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MAPPED, at + unit);
  EXPECT_TRUE(beside == CUDA_ERROR_INVALID_VALUE || value == 0) << beside;
  ASSERT_CU(cuMemUnmap(at, unit));
  ASSERT_CU(cuMemAddressFree(at, 2 * unit));
  ASSERT_CU(cuMemRelease(handle));
}

TEST_F(PointerFacts, OfHostAndManagedMemory) {
  void* pinned = nullptr;
  ASSERT_CU(
      cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED));
  const auto host = reinterpret_cast<CUdeviceptr>(pinned);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host), CU_MEMORYTYPE_HOST);
  EXPECT_EQ(Get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, host + 8), host + 8);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, host), 0u);
  unsigned flags = 0;
  ASSERT_CU(cuMemHostGetFlags(&flags, pinned));
  EXPECT_EQ(flags, unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                            CU_MEMHOSTALLOC_WRITECOMBINED});
  EXPECT_EQ(cuMemHostGetFlags(&flags, &flags), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(host), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr managed = 0;
  ASSERT_CU(cuMemAllocManaged(&managed, 3000, CU_MEM_ATTACH_GLOBAL));
  ExpectRange(managed + 2999, managed, 3000);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), 1u);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, managed), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(Get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, managed), managed);
  EXPECT_EQ(Get<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, managed), 0u);
  ASSERT_CU(cuMemFree_v2(managed));
  ASSERT_CU(cuMemFreeHost(pinned));
}

TEST_F(PointerFacts, SeveralAtOnce) {
  const CUdeviceptr a = Alloc(512);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  unsigned type = 77;
  size_t size = 77;
  CUdeviceptr host = 77;
  void* data[] = {&type, &size, &host};
  ASSERT_CU(cuPointerGetAttributes(3, attributes, data, a));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(size, 512u);
  EXPECT_EQ(host, 0u);
  // A stranger has no attributes, which is no error.
  ASSERT_CU(cuPointerGetAttributes(3, attributes, data, reinterpret_cast<CUdeviceptr>(&type)));
  EXPECT_EQ(type, 0u);
  Answer("range_size_of_a_stranger", size == 0 ? "0" : size == 512 ? "untouched" : "something");
  EXPECT_EQ(cuPointerGetAttributes(0, attributes, data, a), CUDA_ERROR_INVALID_VALUE);
  int handle = -1;
  EXPECT_NE(cuMemGetHandleForAddressRange(&handle, a, 512, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
            CUDA_SUCCESS);  // no whole pages
  ASSERT_CU(cuMemFree_v2(a));
}

TEST_F(PointerFacts, TheInterfaceOf32BitsHasNoAddresses) {
  unsigned small = 0;
  unsigned other = 0;
  size_t all = 0;
  ASSERT_CU(cuDeviceTotalMem_v2(&all, 0));
  const auto most = static_cast<unsigned>(std::min<size_t>(all, ~0u));
  ASSERT_CU(cuDeviceTotalMem(&small, 0));
  EXPECT_EQ(small, most);
  const CUresult info = cuMemGetInfo(&other, &small);
  Answer("cuMemGetInfo_by_its_old_name", NameOf(info));
  if (info != CUDA_SUCCESS) return;  // these contexts have no such interface
  EXPECT_EQ(small, most);
  if (all < ~0u) {
    EXPECT_EQ(other, FreeBytes());
  }
  EXPECT_EQ(cuMemAlloc(&small, 4096), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&small, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&small, &other, 64, 4, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree(4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(0));
  void* pinned = nullptr;
  ASSERT_CU(cuMemAllocHost(&pinned, 4096));
  EXPECT_EQ(cuMemHostGetDevicePointer(&small, pinned, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemFreeHost(pinned));
}

}  // namespace
}  // namespace sluice::contract
