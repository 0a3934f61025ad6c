// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <unistd.h>

#include "tests/contract/answers.h"
#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

class Vmm : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    unit_ = Granularity();
    ASSERT_CU(cuMemAddressReserve(&range_, 8 * unit_, 0, 0, 0));
  }
  void TearDown() override {
    EXPECT_CU(cuMemAddressFree(range_, 8 * unit_));
    ContextTest::TearDown();
  }
  CUmemGenericAllocationHandle Create(size_t bytes) {
    const CUmemAllocationProp prop = DeviceMemory();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
  }
  CUresult Allow(CUdeviceptr address, size_t bytes) {
    const CUmemAccessDesc access = ReadWrite();
    return cuMemSetAccess(address, bytes, &access, 1);
  }
  size_t unit_ = 0;
  CUdeviceptr range_ = 0;
};

TEST_F(Vmm, MapsAndUnmaps) {
  const CUmemGenericAllocationHandle a = Create(unit_);
  const CUmemGenericAllocationHandle b = Create(2 * unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, a, 0));
  ASSERT_CU(cuMemMap(range_ + unit_, 2 * unit_, 0, b, 0));
  ASSERT_CU(Allow(range_, 3 * unit_));
  ASSERT_CU(Fill(range_, 4, 3 * unit_ / 4));  // across both
  EXPECT_EQ(Read32(range_ + 3 * unit_ - 4), 4u);
  ASSERT_CU(cuMemRelease(a));
  ASSERT_CU(cuMemRelease(b));
  EXPECT_EQ(Read32(range_), 4u);
  ASSERT_CU(cuMemUnmap(range_, 3 * unit_));
}

TEST_F(Vmm, MappingsHoldMemoryWithoutAHandle) {
  bool held = false;
  bool given_back = false;
  // Programs beside it on a real GPU may give back as much meanwhile: a few times is enough.
  for (int i = 0; i < 5 && !(held && given_back); ++i) {
    const size_t before = FreeBytes();
    const CUmemGenericAllocationHandle h = Create(8 * unit_);
    ASSERT_CU(cuMemMap(range_, 8 * unit_, 0, h, 0));
    ASSERT_CU(cuMemRelease(h));
    held = FreeBytes() + 8 * unit_ <= before + Slack();
    ASSERT_CU(cuMemUnmap(range_, 8 * unit_));
    given_back = FreeBytes() + Slack() >= before;
  }
  EXPECT_TRUE(held);
  EXPECT_TRUE(given_back);
}

TEST_F(Vmm, EnforcesTheHeadersRules) {
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle h = 0;
  EXPECT_EQ(cuMemCreate(&h, unit_ + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  size_t total = 0;
  ASSERT_CU(cuDeviceTotalMem_v2(&total, 0));
  EXPECT_EQ(cuMemCreate(&h, 2 * total / unit_ * unit_, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  h = Create(2 * unit_);
  EXPECT_EQ(cuMemMap(range_, 2 * unit_, unit_, h, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(range_, unit_, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(range_ + 1, 2 * unit_, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  if (!RealDriver()) {  // a real one maps beyond what was reserved
    EXPECT_EQ(cuMemMap(range_ + 7 * unit_, 2 * unit_, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  }
  ASSERT_CU(cuMemMap(range_, 2 * unit_, 0, h, 0));
  EXPECT_EQ(cuMemMap(range_ + unit_, 2 * unit_, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(range_, unit_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Allow(range_, 3 * unit_), CUDA_ERROR_INVALID_VALUE);
  const CUresult more = cuMemUnmap(range_, 3 * unit_);
  Answer("unmapping_more_than_is_mapped", NameOf(more));
  if (more == CUDA_SUCCESS) {
    ASSERT_CU(cuMemMap(range_, 2 * unit_, 0, h, 0));
  }
  EXPECT_EQ(cuMemAddressFree(range_, 8 * unit_), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemUnmap(range_, 2 * unit_));
  EXPECT_EQ(cuMemAddressFree(range_, unit_), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemRelease(h));
}

TEST_F(Vmm, HandlesThatAreNoneAreRefused) {
  OnlySimulated("a real driver reads what a stale handle points to");
  const CUmemGenericAllocationHandle h = Create(2 * unit_);
  EXPECT_EQ(cuMemMap(range_, 2 * unit_, 0, h + 999, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemRelease(h));
  EXPECT_EQ(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
}

/// Writes by a kernel to memory that was mapped without access: its process has no use of a real
/// driver any more.
int TouchWithoutAccess() {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  if (!StartContext() || cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&fill, module, "fill") != CUDA_SUCCESS) {
    return 1;
  }
  const size_t unit = Granularity();
  CUdeviceptr at = 0;
  if (cuMemAddressReserve(&at, unit, 0, 0, 0) != CUDA_SUCCESS ||
      cuMemMap(at, unit, 0, CreateMemory(unit), 0) != CUDA_SUCCESS) {
    return 1;
  }
  uint32_t value = 1;
  uint64_t count = 4;
  void* params[] = {&at, &value, &count};
  static_cast<void>(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  return 0;
}
const bool kTouch = AddRole("touch", TouchWithoutAccess);

TEST_F(Vmm, AKernelFaultsWithoutAccess) {
  OtherProcess other("touch");
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_ERROR_ILLEGAL_ADDRESS));
}

TEST_F(Vmm, NoAccessBeforeSetAccess) {
  const CUmemGenericAllocationHandle h = Create(unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, h, 0));
  unsigned long long flags = 9;
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_CU(cuMemGetAccess(&flags, &location, range_));
  EXPECT_EQ(flags, 0u);
  // Settings and copies are refused; a kernel faults (the next test).
  EXPECT_EQ(cuMemsetD8_v2(range_, 1, 16), CUDA_ERROR_INVALID_VALUE);
  uint32_t word = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, range_, sizeof word), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(Allow(range_, unit_));
  ASSERT_CU(cuMemGetAccess(&flags, &location, range_));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  ASSERT_CU(cuMemsetD8_v2(range_, 1, 16));
  EXPECT_EQ(Read32(range_), 0x01010101u);
  ASSERT_CU(cuMemUnmap(range_, unit_));
  ASSERT_CU(cuMemRelease(h));
}

TEST_F(Vmm, EveryContextSeesTheMappings) {
  const CUmemGenericAllocationHandle h = Create(unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, h, 0));
  ASSERT_CU(Allow(range_, unit_));
  ASSERT_CU(Fill(range_, 77, 1));
  ASSERT_CU(cuCtxSynchronize());
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));  // later than the mapping
  EXPECT_EQ(Read32(range_), 77u);
  EXPECT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuMemUnmap(range_, unit_));
  ASSERT_CU(cuMemRelease(h));
}

TEST_F(Vmm, AMappingOutlivesTheContextThatMadeIt) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  const CUmemGenericAllocationHandle h = Create(unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, h, 0));
  ASSERT_CU(Allow(range_, unit_));
  ASSERT_CU(cuMemRelease(h));
  ASSERT_CU(cuMemsetD32_v2(range_, 78, 1));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(Read32(range_), 78u);
  ASSERT_CU(Fill(range_, 79, 1));
  EXPECT_EQ(Read32(range_), 79u);
  ASSERT_CU(cuMemUnmap(range_, unit_));
}

TEST_F(Vmm, RetainFindsTheHandleOfAMapping) {
  const CUmemGenericAllocationHandle h = Create(unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, h, 0));
  ASSERT_CU(cuMemRelease(h));
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range_ + 8)));
  EXPECT_EQ(again, h);
  ASSERT_CU(cuMemUnmap(range_, unit_));
  ASSERT_CU(cuMemMap(range_ + unit_, unit_, 0, again, 0));
  ASSERT_CU(cuMemUnmap(range_ + unit_, unit_));
  ASSERT_CU(cuMemRelease(again));
}

/// Imports what is passed, adds one to its first word, and holds it until told to go.
int ImportAndChange() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  const size_t unit = Granularity();
  CUmemGenericAllocationHandle h = 0;
  CUdeviceptr at = 0;
  const CUmemAccessDesc access = ReadWrite();
  const CUresult imported =
      cuMemImportFromShareableHandle(&h, reinterpret_cast<void*>(static_cast<intptr_t>(kPassedFd)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(kPassedFd);
  if (imported != CUDA_SUCCESS || cuMemAddressReserve(&at, unit, 0, 0, 0) != CUDA_SUCCESS ||
      cuMemMap(at, unit, 0, h, 0) != CUDA_SUCCESS ||
      cuMemSetAccess(at, unit, &access, 1) != CUDA_SUCCESS) {
    return 1;
  }
  uint32_t word = 0;
  cuMemcpyDtoH_v2(&word, at, sizeof word);
  ++word;
  cuMemcpyHtoD_v2(at, &word, sizeof word);
  WriteToTest(cuCtxSynchronize());
  ReadFromTest();
  return 0;
}
const bool kImport = AddRole("import", ImportAndChange);

TEST_F(Vmm, MemoryIsSharedByDescriptorAndLivesWithItsLastHolder) {
  const size_t before = FreeBytes();
  const CUmemGenericAllocationHandle h = Create(unit_);
  ASSERT_CU(cuMemMap(range_, unit_, 0, h, 0));
  ASSERT_CU(Allow(range_, unit_));
  ASSERT_CU(Fill(range_, 41, 1));
  ASSERT_CU(cuCtxSynchronize());
  int fd = -1;
  ASSERT_CU(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OtherProcess other("import", fd);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS);
  EXPECT_EQ(Read32(range_), 42u);
  close(fd);
  ASSERT_CU(cuMemUnmap(range_, unit_));
  ASSERT_CU(cuMemRelease(h));
  const size_t held = FreeBytes();
  if (!RealDriver()) {  // programs beside it there give back and take as much
    EXPECT_LE(held + unit_, before);
  }
  other.Kill();
  EXPECT_TRUE(Eventually([&] { return FreeBytes() + Slack() >= before; }));
}

TEST_F(Vmm, ImportsOnlyMemoryOfThisGpu) {
  CUmemGenericAllocationHandle h = 0;
  const int fd = open("/dev/null", O_RDWR);
  EXPECT_EQ(cuMemImportFromShareableHandle(&h, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_UNKNOWN);
  close(fd);
  EXPECT_NE(cuMemImportFromShareableHandle(&h, reinterpret_cast<void*>(intptr_t{12345}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
}

}  // namespace
}  // namespace sluice::contract
