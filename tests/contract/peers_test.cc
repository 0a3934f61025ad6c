// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What kernels of one GPU may do with the memory of another.
#include "tests/contract/lent_memory.h"
#include "tests/contract/peers_fixture.h"

namespace sluice::contract {
namespace {

const bool kTwo = NeedGpus("2");

using Peers = PeersTest;

TEST_F(Peers, AreTheOtherGpus) {
  int value = -1;
  ASSERT_CU(cuDeviceCanAccessPeer(&value, 1, 0));
  EXPECT_EQ(value, 1);
  ASSERT_CU(cuDeviceCanAccessPeer(&value, 0, 0));
  EXPECT_EQ(value, 0);
  ASSERT_CU(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(value, 1);
  ASSERT_CU(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
  EXPECT_EQ(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceCanAccessPeer(&value, 0, 99), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceCanAccessPeer(nullptr, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Peers, AccessIsEnabledAndDisabled) {
  Use(0);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  ASSERT_CU(cuCtxEnablePeerAccess(context_[1], 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  // In one direction only.
  Use(1);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  Use(0);
  ASSERT_CU(cuCtxDisablePeerAccess(context_[1]));
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  // Two contexts of one GPU are not peers.
  CUcontext second = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&second, 0, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  ASSERT_CU(cuCtxDestroy_v2(second));
}

TEST_F(Peers, SeeWhatIsThereAndWhatComes) {
  const CUdeviceptr before = Alloc(1);
  Use(0);
  ASSERT_CU(cuCtxEnablePeerAccess(context_[1], 0));
  const CUdeviceptr after = Alloc(1, 4u << 20);  // more memory than the heap had
  Fill(0, before, 21);
  Fill(0, after, 22);
  EXPECT_EQ(Read(1, before), All(21));
  EXPECT_EQ(Read(1, after), All(22));
  // What is freed and allocated again is seen, too.
  Free(1, after);
  const CUdeviceptr again = Alloc(1, 4u << 20);
  Fill(0, again, 23);
  EXPECT_EQ(Read(1, again), All(23));
  Free(1, again);
  Free(1, before);
}

TEST_F(Peers, WithoutAccessAKernelFaults) {
  const CUdeviceptr memory = Alloc(1);
  Fill(1, memory, 5);
  EXPECT_EQ(FillFromElsewhere(0, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Read(1, memory), All(5));  // nor did it harm
  // A copy into it is not an access of a kernel: that is still none.
  const CUdeviceptr own = Alloc(0);
  Fill(0, own, 6);
  ASSERT_CU(cuMemcpyDtoD_v2(memory, own, kBytes));
  EXPECT_EQ(Read(1, memory), All(6));
  EXPECT_EQ(FillFromElsewhere(0, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
  Free(0, own);
  Free(1, memory);
}

TEST_F(Peers, AccessEndsWhenItIsDisabled) {
  const CUdeviceptr memory = Alloc(1);
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&context, 0, 0));
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  ASSERT_CU(cuCtxEnablePeerAccess(context_[1], 0));
  ASSERT_CU(FillIn(module, memory, 31, kWords));
  ASSERT_CU(cuCtxDisablePeerAccess(context_[1]));
  ASSERT_CU(FillIn(module, memory, 32, kWords));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_CU(cuCtxDestroy_v2(context));
  EXPECT_EQ(Read(1, memory), All(31));
  Free(1, memory);
}

/// A handle on one GPU, mapped and accessible nowhere.
struct Mapped {
  explicit Mapped(int gpu) {
    CUmemAllocationProp prop = DeviceMemory();
    prop.location.id = gpu;
    EXPECT_CU(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0));
    EXPECT_CU(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    EXPECT_CU(cuMemMap(address, bytes, 0, handle, 0));
  }
  ~Mapped() {
    EXPECT_CU(cuMemUnmap(address, bytes));
    EXPECT_CU(cuMemAddressFree(address, bytes));
    EXPECT_CU(cuMemRelease(handle));
  }
  CUresult Allow(std::vector<int> gpus, CUmemAccess_flags flags) const {
    std::vector<CUmemAccessDesc> access;
    for (const int gpu : gpus) access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, flags});
    return cuMemSetAccess(address, bytes, access.data(), access.size());
  }
  unsigned long long Access(int gpu) const {
    const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    unsigned long long flags = 99;
    EXPECT_CU(cuMemGetAccess(&flags, &location, address));
    return flags;
  }
  size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
};

TEST_F(Peers, MappingsAreAccessibleWhereAccessWasSet) {
  const Mapped mapped(1);
  CUmemAllocationProp prop{};
  ASSERT_CU(cuMemGetAllocationPropertiesFromHandle(&prop, mapped.handle));
  EXPECT_EQ(prop.location.id, 1);
  ASSERT_CU(mapped.Allow({1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(mapped.Access(0), unsigned{CU_MEM_ACCESS_FLAGS_PROT_NONE});
  EXPECT_EQ(mapped.Access(1), unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  Fill(1, mapped.address, 41);
  EXPECT_EQ(FillFromElsewhere(0, mapped.address), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_CU(mapped.Allow({0, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(mapped.Access(0), unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  Fill(0, mapped.address, 42);
  EXPECT_EQ(Read(1, mapped.address), All(42));
  // A context that comes later sees it as its GPU does.
  EXPECT_CU(FillFromElsewhere(0, mapped.address));
  ASSERT_CU(mapped.Allow({1}, CU_MEM_ACCESS_FLAGS_PROT_NONE));
  EXPECT_CU(FillFromElsewhere(0, mapped.address));
  EXPECT_EQ(FillFromElsewhere(1, mapped.address), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(mapped.Allow({0, 99}, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_DEVICE);
}

/// What a copy of a mapping of GPU 1 answers in a context of GPU 0, which it may break.
template <typename F>
std::string CopyAnswer(F copy) {
  CUcontext context = nullptr;
  EXPECT_CU(cuCtxCreate_v2(&context, 0, 0));
  CUdeviceptr target = 0;
  EXPECT_CU(cuMemAlloc_v2(&target, Peers::kBytes));
  CUresult result = copy(context, target);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  EXPECT_CU(cuCtxDestroy_v2(context));
  return NameOf(result);
}

TEST_F(Peers, WhatCopiesMayTouchWithoutAccess) {
  const Mapped mapped(1);
  ASSERT_CU(mapped.Allow({1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  Answer("copy_of_a_foreign_mapping", CopyAnswer([&](CUcontext, CUdeviceptr target) {
           return cuMemcpyDtoD_v2(target, mapped.address, kBytes);
         }));
  Answer("peer_copy_of_a_foreign_mapping", CopyAnswer([&](CUcontext context, CUdeviceptr target) {
           return cuMemcpyPeer(target, context, mapped.address, context_[1], kBytes);
         }));
  Fill(1, mapped.address, 43);  // whatever became of the copies
  EXPECT_EQ(Read(1, mapped.address), All(43));
}

TEST_F(Peers, PoolsAreAccessibleWhereAccessWasSet) {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);  // it must be local
  Use(1);
  CUdeviceptr early = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&early, kBytes, pool, nullptr));
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  CUmemLocation other{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_CU(cuMemPoolGetAccess(&flags, pool, &other));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT_EQ(FillFromElsewhere(0, early), CUDA_ERROR_ILLEGAL_ADDRESS);
  const CUmemAccessDesc access{other, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_CU(cuMemPoolSetAccess(pool, &access, 1));
  ASSERT_CU(cuMemPoolGetAccess(&flags, pool, &other));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  Use(1);
  CUdeviceptr late = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&late, 4u << 20, pool, nullptr));
  Fill(0, early, 51);
  Fill(0, late, 52);
  EXPECT_EQ(Read(1, early), All(51));
  EXPECT_EQ(Read(1, late), All(52));
  CUmemAccessDesc home{{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  EXPECT_EQ(cuMemPoolSetAccess(pool, &home, 1), CUDA_ERROR_INVALID_VALUE);
  Use(1);
  ASSERT_CU(cuMemFreeAsync(early, nullptr));
  ASSERT_CU(cuMemFreeAsync(late, nullptr));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuMemPoolDestroy(pool));
}

}  // namespace
}  // namespace sluice::contract
