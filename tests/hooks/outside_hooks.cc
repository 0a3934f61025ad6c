// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdlib>
#include <cstring>

#include "tests/hooks/hook_fixture.h"

// Memory outside the pool: what the daemon charges or counts is what the program has.

namespace sluice::hooks {
namespace {

class OutsideHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_CU(cuMemAddressReserve(&range_, 4 * kBytes, 0, 0, 0));
  }
  CUmemGenericAllocationHandle Create() {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = DeviceMemory();
    EXPECT_CU(cuMemCreate(&handle, kBytes, &prop, 0));
    EXPECT_EQ(Outside("physical"), kBytes);
    return handle;
  }
  void ExpectOutside(const std::string& family, uint64_t bytes) {
    ExpectSoon([&] { return Outside(family); }, bytes);
  }

  void ExpectExternal() {
    const auto handle = Create();
    int fd = -1;
    ASSERT_CU(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor{};
    descriptor.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    descriptor.handle.fd = fd;
    descriptor.size = kBytes;
    CUexternalMemory memory = nullptr;
    ASSERT_CU(cuImportExternalMemory(&memory, &descriptor));
    ExpectOutside("imported", kBytes);
    ASSERT_CU(cuDestroyExternalMemory(memory));
    ExpectOutside("imported", 0);
  }

  static constexpr size_t kBytes = 2 * kMiB;
  CUdeviceptr range_ = 0;
};

TEST_F(OutsideHook, cuMemCreate) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = DeviceMemory();
  EXPECT_EQ(cuMemCreate(&handle, kMoreThanLimit, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  Create();
}

TEST_F(OutsideHook, cuMemAllocManaged) {
  CUdeviceptr at = 0;
  EXPECT_EQ(cuMemAllocManaged(&at, kMoreThanLimit, 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemAllocManaged(&at, kMiB, 1));
  EXPECT_EQ(Outside("managed"), kMiB);
  ASSERT_CU(cuMemFree_v2(at));
  ExpectOutside("managed", 0);
}

TEST_F(OutsideHook, cuMemRelease) {
  ASSERT_CU(cuMemRelease(Create()));
  ExpectOutside("physical", 0);
}

TEST_F(OutsideHook, cuMemMap) {
  const auto handle = Create();
  ASSERT_CU(cuMemMap(range_, kBytes, 0, handle, 0));
  ASSERT_CU(cuMemRelease(handle));
  Begin();  // an answer: what was said before it has come
  EXPECT_EQ(Outside("physical"), kBytes) << "the mapping holds it";
  ASSERT_CU(cuMemUnmap(range_, kBytes));
  ExpectOutside("physical", 0);
}

TEST_F(OutsideHook, cuMemUnmap) {
  const auto handle = Create();
  ASSERT_CU(cuMemMap(range_, kBytes, 0, handle, 0));
  ASSERT_CU(cuMemRelease(handle));
  ASSERT_CU(cuMemUnmap(range_, kBytes));
  ExpectOutside("physical", 0);
}

TEST_F(OutsideHook, cuMemRetainAllocationHandle) {
  const auto handle = Create();
  ASSERT_CU(cuMemMap(range_, kBytes, 0, handle, 0));
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range_ + 4096)));
  ASSERT_CU(cuMemRelease(handle));
  ASSERT_CU(cuMemUnmap(range_, kBytes));
  CUdeviceptr managed = 0;
  ASSERT_CU(cuMemAlloc_v2(&managed, 4 * kMiB));  // an answer: what was said before it has come
  EXPECT_EQ(Outside("physical"), kBytes) << "the second handle holds it";
  ASSERT_CU(cuMemRelease(again));
  ExpectOutside("physical", 0);
}

TEST_F(OutsideHook, cuMemImportFromShareableHandle) {
  const auto handle = Create();
  int fd = -1;
  ASSERT_CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported = 0;
  ASSERT_CU(cuMemImportFromShareableHandle(&imported,
                                           reinterpret_cast<void*>(static_cast<uintptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ASSERT_CU(cuMemMap(range_, kBytes, 0, imported, 0));
  ExpectOutside("imported", kBytes);
  ASSERT_CU(cuMemUnmap(range_, kBytes));
  ASSERT_CU(cuMemRelease(imported));
  ExpectOutside("imported", 0);
}

/// Memory that the old way can share: of another process, which is no job.
const bool kExporter = contract::AddRole("exporter", [] {
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  CUipcMemHandle handle{};
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc_v2(&at, kMiB) != CUDA_SUCCESS ||
      cuIpcGetMemHandle(&handle, at) != CUDA_SUCCESS) {
    return 1;
  }
  for (size_t i = 0; i < sizeof handle; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, handle.reserved + i, sizeof word);
    contract::WriteToTest(word);
  }
  contract::ReadFromTest();
  return 0;
});

class IpcHook : public OutsideHook {
 protected:
  void SetUp() override {
    OutsideHook::SetUp();
    // Without the library and its socket: nobody's job.
    unsetenv("LD_PRELOAD");
    other_ = std::make_unique<contract::OtherProcess>("exporter");
    for (size_t i = 0; i < sizeof handle_; i += sizeof(uint64_t)) {
      const uint64_t word = other_->Read();
      memcpy(handle_.reserved + i, &word, sizeof word);
    }
  }
  void ExpectCounted(const std::function<CUresult(CUdeviceptr*, CUipcMemHandle, unsigned)>& open) {
    CUdeviceptr at = 0;
    ASSERT_CU(open(&at, handle_, 1));
    ExpectOutside("imported", kMiB);
    ASSERT_CU(cuIpcCloseMemHandle(at));
    ExpectOutside("imported", 0);
  }
  std::unique_ptr<contract::OtherProcess> other_;
  CUipcMemHandle handle_{};
};

TEST_F(IpcHook, cuIpcOpenMemHandle) { ExpectCounted(cuIpcOpenMemHandle); }
TEST_F(IpcHook, cuIpcOpenMemHandle_v2) { ExpectCounted(cuIpcOpenMemHandle_v2); }
TEST_F(IpcHook, cuIpcCloseMemHandle) { ExpectCounted(cuIpcOpenMemHandle_v2); }

TEST_F(OutsideHook, cuImportExternalMemory) { ExpectExternal(); }
TEST_F(OutsideHook, cuDestroyExternalMemory) { ExpectExternal(); }

TEST_F(OutsideHook, cuMemAllocHost) {
  void* at = nullptr;
  ASSERT_CU(cuMemAllocHost(&at, 8192));
  ExpectOutside("host_pinned", 8192);
}

TEST_F(OutsideHook, cuMemHostRegister) {
  void* at = std::aligned_alloc(4096, 8192);
  ASSERT_CU(cuMemHostRegister(at, 8192, 0));
  ExpectOutside("host_registered", 8192);
  ASSERT_CU(cuMemHostUnregister(at));
  std::free(at);
}

TEST_F(OutsideHook, cuMemHostAlloc) {
  void* at = nullptr;
  ASSERT_CU(cuMemHostAlloc(&at, 8192, 0));
  ExpectOutside("host_pinned", 8192);
}

TEST_F(OutsideHook, cuMemAllocHost_v2) {
  void* at = nullptr;
  ASSERT_CU(cuMemAllocHost_v2(&at, 8192));
  ExpectOutside("host_pinned", 8192);
}

TEST_F(OutsideHook, cuMemFreeHost) {
  void* at = nullptr;
  ASSERT_CU(cuMemHostAlloc(&at, 8192, 0));
  ASSERT_CU(cuMemFreeHost(at));
  ExpectOutside("host_pinned", 0);
}

TEST_F(OutsideHook, cuMemHostRegister_v2) {
  void* at = std::aligned_alloc(4096, 8192);
  ASSERT_CU(cuMemHostRegister_v2(at, 8192, 0));
  ExpectOutside("host_registered", 8192);
  ASSERT_CU(cuMemHostUnregister(at));
  std::free(at);
}

TEST_F(OutsideHook, cuMemHostUnregister) {
  void* at = std::aligned_alloc(4096, 8192);
  ASSERT_CU(cuMemHostRegister_v2(at, 8192, 0));
  ASSERT_CU(cuMemHostUnregister(at));
  ExpectOutside("host_registered", 0);
  std::free(at);
}

}  // namespace
}  // namespace sluice::hooks
