// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dlfcn.h>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr int kDriver = 13000;

void* Exported(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return dlsym(library, name);
}

void* Get(const char* base, int version, cuuint64_t flags) {
  void* pointer = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  EXPECT_CU(cuGetProcAddress_v2(base, &pointer, version, flags, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS) << base;
  return pointer;
}

TEST(ProcAddress, EveryFunctionIsExportedAndFound) {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names)      \
  EXPECT_NE(Exported(#symbol), nullptr) << #symbol;                        \
  EXPECT_EQ(Get(#base, version,                                            \
                per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM \
                           : CU_GET_PROC_ADDRESS_DEFAULT),                 \
            Exported(#symbol))                                             \
      << #symbol;
#include "common/cuda/functions.def"
#undef CU_FUNCTION
}

TEST(ProcAddress, PicksTheNewestVariantThatIsOldEnough) {
  EXPECT_EQ(Get("cuDeviceGetUuid", 9020, 0), Exported("cuDeviceGetUuid"));
  EXPECT_EQ(Get("cuDeviceGetUuid", 11039, 0), Exported("cuDeviceGetUuid"));
  EXPECT_EQ(Get("cuDeviceGetUuid", kDriver, 0), Exported("cuDeviceGetUuid_v2"));
  EXPECT_EQ(Get("cuGetProcAddress", 11030, 0), Exported("cuGetProcAddress"));
  EXPECT_EQ(Get("cuGetProcAddress", 12000, 0), Exported("cuGetProcAddress_v2"));
}

TEST(ProcAddress, FlagsChooseThePerThreadVariant) {
  EXPECT_EQ(Get("cuLaunchKernel", kDriver, 0), Exported("cuLaunchKernel"));
  EXPECT_EQ(Get("cuLaunchKernel", kDriver, 1), Exported("cuLaunchKernel"));
  EXPECT_EQ(Get("cuLaunchKernel", kDriver, 2), Exported("cuLaunchKernel_ptsz"));
  EXPECT_EQ(Get("cuMemAlloc", kDriver, 2), Exported("cuMemAlloc_v2"));
  // The per-thread variant came with 7.0. Before that there is only the other one, which is not
  // what was asked for.
  void* pointer = &pointer;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(cuGetProcAddress_v2("cuLaunchKernel", &pointer, 4000, 2, &status));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(ProcAddress, SaysWhatIsMissing) {
  void* pointer = &pointer;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(cuGetProcAddress_v2("cuNoSuchThing", &pointer, kDriver, 0, &status));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_CU(cuGetProcAddress_v2("cuMemAllocAsync", &pointer, 11010, 0, &status));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  Answer("missing_without_a_place_for_the_status",
         NameOf(cuGetProcAddress_v2("cuNoSuchThing", &pointer, kDriver, 0, nullptr)));
  Answer("missing_by_the_older_call",
         NameOf(cuGetProcAddress("cuNoSuchThing", &pointer, kDriver, 0)));
  EXPECT_EQ(cuGetProcAddress("cuInit", &pointer, kDriver + 1000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuInit", &pointer, kDriver, 99), CUDA_ERROR_INVALID_VALUE);
}

TEST(ProcAddress, RefusesNoName) {
  OnlySimulated("a real driver reads it");
  void* pointer = nullptr;
  EXPECT_EQ(cuGetProcAddress(nullptr, &pointer, kDriver, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(ProcAddress, ThereAreNoPrivateTables) {
  OnlySimulated("a real driver has them");
  const void* table = nullptr;
  const CUuuid id{};
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
}

TEST(Init, CallsBeforeInitAreRefused) {
  // The first test of this program that could initialise the driver is below.
  int count = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST(Init, DescribesTheDevice) {
  ASSERT_CU(cuInit(0));
  int count = 0;
  CUdevice device = -1;
  ASSERT_CU(cuDeviceGetCount(&count));
  EXPECT_GE(count, 1);
  ASSERT_CU(cuDeviceGet(&device, 0));
  EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  char name[64];
  ASSERT_CU(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_NE(name[0], 0);
  size_t bytes = 0;
  ASSERT_CU(cuDeviceTotalMem_v2(&bytes, 0));
  if (!RealDriver()) {
    EXPECT_EQ(bytes, size_t{64} << 20);
  }
  int value = 0;
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
  EXPECT_EQ(value, 1);
  CUcontext context = nullptr;
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 64), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_CU(cuCtxGetCurrent(&context));
  EXPECT_EQ(context, nullptr);
  const char* text = nullptr;
  ASSERT_CU(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  for (const CUresult result :
       {CUDA_ERROR_LOSSY_QUERY, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_MERGE,
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE}) {
    EXPECT_CU(cuGetErrorName(result, &text)) << result;
    EXPECT_CU(cuGetErrorString(result, &text)) << result;
  }
  EXPECT_EQ(cuGetErrorString(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace sluice::contract
