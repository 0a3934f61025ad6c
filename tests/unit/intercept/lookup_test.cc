// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/cuda/driver_api.h"

// Runs with the built libsluice.so preloaded, on a driver whose functions all answer
// CUDA_ERROR_UNKNOWN. A hooked cuMemAllocAsync without a place for its answer is refused without
// asking anybody, and so tells which way a call went. SLUICE_SOCKET names a socket where nobody
// listens, or is not set at all: dropping it must not take the hooks away.

namespace {

constexpr CUresult kHooked = CUDA_ERROR_INVALID_VALUE;

void* Driver() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}

CUresult Call(void* entry) {
  return reinterpret_cast<PFN_cuMemAllocAsync>(entry)(nullptr, 1, nullptr);
}

TEST(Lookup, LinkTimeBinding) { EXPECT_EQ(cuMemAllocAsync(nullptr, 1, nullptr), kHooked); }

TEST(Lookup, DlsymOnTheDriversHandle) {
  ASSERT_NE(Driver(), nullptr);
  void* entry = dlsym(Driver(), "cuMemAllocAsync");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(Call(entry), kHooked);
}

TEST(Lookup, DlsymWithoutAHandle) {
  EXPECT_EQ(Call(dlsym(RTLD_DEFAULT, "cuMemAllocAsync")), kHooked);
}

TEST(Lookup, WhatIsNotHookedIsTheDriversOwn) {
  void* entry = dlsym(Driver(), "cuDriverGetVersion");
  ASSERT_NE(entry, nullptr);
  int version = 0;
  EXPECT_EQ(reinterpret_cast<PFN_cuDriverGetVersion>(entry)(&version), CUDA_ERROR_UNKNOWN);
  Dl_info info{};
  ASSERT_NE(dladdr(entry, &info), 0);
  EXPECT_NE(std::string(info.dli_fname).find("libcuda.so.1"), std::string::npos);
  for (const char* name : {"cuGetExportTable", "cuDeviceGetCount", "cuDeviceGetUuid_v2"}) {
    ASSERT_NE(dladdr(dlsym(Driver(), name), &info), 0);
    EXPECT_NE(std::string(info.dli_fname).find("libcuda.so.1"), std::string::npos) << name;
  }
}

TEST(Lookup, AMissingNameIsMissingAndDlerrorSaysSo) {
  dlerror();
  EXPECT_EQ(dlsym(Driver(), "cuNoSuchFunction"), nullptr);
  const char* error = dlerror();
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("cuNoSuchFunction"), std::string::npos);
  EXPECT_NE(dlsym(Driver(), "cuMemAllocAsync"), nullptr);
  EXPECT_EQ(dlerror(), nullptr);
}

TEST(Lookup, AnotherLibrarysFunctionOfThatNameIsItsOwn) {
  void* other = dlopen(getenv("NEXT_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(other, nullptr) << dlerror();
  auto* entry = reinterpret_cast<int (*)()>(dlsym(other, "cuMemAllocAsync"));
  EXPECT_EQ(entry(), 4711);
}

TEST(Lookup, NextStillMeansBehindTheCaller) {
  auto* check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "sluice_next_is_itself"));
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(check(), 0);
}

// Loaded there, the driver has no library in front of it.
TEST(Lookup, ADriverInANamespaceOfItsOwnIsSaidAloud) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's run time does not stand a second C library";
#endif
  testing::internal::CaptureStderr();
  void* base = dlmopen(LM_ID_BASE, "libcuda.so.1", RTLD_NOW);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(base, nullptr) << dlerror();
  testing::internal::CaptureStderr();
  void* apart = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_NE(apart, nullptr) << dlerror();
  EXPECT_NE(apart, base);
  EXPECT_NE(said.find("sluice: the program loads libcuda.so.1 into a namespace of its own"),
            std::string::npos)
      << said;
}

TEST(Lookup, DlmopenFailsAsItDoesWithoutTheLibrary) {
  EXPECT_EQ(dlmopen(LM_ID_BASE, "libno-such-library.so", RTLD_NOW), nullptr);
  const char* error = dlerror();
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("libno-such-library.so"), std::string::npos);
}

class ProcAddress : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("FAKE_GPA", GetParam(), 1); }
  static void* Ask(const char* base, int version, cuuint64_t flags) {
    void* pfn = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const auto get =
        reinterpret_cast<PFN_cuGetProcAddress_v2>(dlsym(Driver(), "cuGetProcAddress_v2"));
    EXPECT_EQ(get(base, &pfn, version, flags, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) << "the driver's own answer";
    return pfn;
  }
};

TEST_P(ProcAddress, GivesTheHook) {
  EXPECT_EQ(Call(Ask("cuMemAllocAsync", 11020, 0)), kHooked);
  EXPECT_EQ(Call(Ask("cuMemAllocAsync", 13000, 2)), kHooked);
}

TEST_P(ProcAddress, OfItselfGivesTheHookOfTheRightArity) {
  const auto v1 = reinterpret_cast<PFN_cuGetProcAddress>(Ask("cuGetProcAddress", 11030, 0));
  void* pfn = nullptr;
  EXPECT_EQ(v1("cuMemAllocAsync", &pfn, 12000, 0), CUDA_SUCCESS);
  EXPECT_EQ(Call(pfn), kHooked);
  const auto v2 = reinterpret_cast<PFN_cuGetProcAddress_v2>(Ask("cuGetProcAddress", 12000, 0));
  pfn = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(v2("cuMemAllocAsync", &pfn, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(Call(pfn), kHooked);
}

TEST_P(ProcAddress, WhatTheLibraryDoesNotKnowPassesAndIsNamedOnRequest) {
  testing::internal::CaptureStderr();
  EXPECT_NE(Ask("cuMemAllocOfTomorrow", 14000, 0), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  setenv("SLUICE_VERBOSE", "1", 1);
  testing::internal::CaptureStderr();
  EXPECT_NE(Ask("cuMemAllocOfTomorrow", 14000, 0), nullptr);
  EXPECT_NE(Ask("cuMemAllocOfTomorrow", 14000, 0), nullptr);
  EXPECT_NE(Ask("cuCtxGetDevice", 13000, 0), nullptr) << "known, and not hooked";
  const std::string said = testing::internal::GetCapturedStderr();
  unsetenv("SLUICE_VERBOSE");
  // The second parameter of this test runs in the same process, and each name is said once.
  static const std::string first = said;
  EXPECT_EQ(first,
            "sluice: passes through unseen, because it is newer than the library: "
            "cuMemAllocOfTomorrow\n");
}

TEST(Lookup, WhatDlsymFindsInTheDriverAndTheLibraryDoesNotKnowIsNamedOnRequest) {
  setenv("SLUICE_VERBOSE", "1", 1);
  testing::internal::CaptureStderr();
  EXPECT_NE(dlsym(Driver(), "cuCtxSynchronize_v9"), nullptr);
  EXPECT_NE(dlsym(Driver(), "cuDeviceGetCount"), nullptr) << "known, and not hooked";
  void* other = dlopen(getenv("NEXT_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(dlsym(other, "cuOfAnotherLibrary"), nullptr);
  EXPECT_EQ(dlsym(Driver(), "cuNoSuchFunction"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  unsetenv("SLUICE_VERBOSE");
  EXPECT_EQ(said,
            "sluice: passes through unseen, because it is newer than the library: "
            "cuCtxSynchronize_v9\n");
}

TEST_P(ProcAddress, StreamKindsAreKeptApart) {
  void* legacy = Ask("cuMemAllocAsync", 11020, 0);
  void* explicit_legacy = Ask("cuMemAllocAsync", 11020, 1);
  void* per_thread = Ask("cuMemAllocAsync", 11020, 2);
  EXPECT_EQ(legacy, explicit_legacy);
  EXPECT_NE(legacy, per_thread);
  EXPECT_EQ(legacy, dlsym(RTLD_DEFAULT, "cuMemAllocAsync"));
  EXPECT_EQ(per_thread, dlsym(RTLD_DEFAULT, "cuMemAllocAsync_ptsz"));
}

TEST_P(ProcAddress, AVariantThatIsNotHookedIsTheDriversOwn) {
  EXPECT_EQ(Ask("cuCtxSynchronize", 13010, 0), dlsym(Driver(), "cuCtxSynchronize_v9"));
  EXPECT_NE(Ask("cuCtxSynchronize", 12000, 0), dlsym(Driver(), "cuCtxSynchronize_v9"));
  EXPECT_EQ(Ask("cuMemGetInfo", 1000, 0), nullptr) << "older than the oldest";
  EXPECT_EQ(Ask("cuNoSuchFunction", 12000, 0), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Answers, ProcAddress, ::testing::Values("exported", "private"));

TEST(Lookup, AnAbsentDaemonFailsTheFirstAllocation) {
  CUdeviceptr at = 0;
  // The driver has no context here: its own answer comes first.
  EXPECT_EQ(cuMemAlloc_v2(&at, 512), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemAlloc_v2(&at, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
