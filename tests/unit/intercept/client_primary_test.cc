// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/intercept/client_fixture.h"

// A session that begins where no context is current, or one of another GPU: it lives in the primary
// context, of which the library has a reference as long as the program has not ended it.

namespace sluice::test {
namespace {

using protocol::Family;
using protocol::FrameType;

class ClientPrimary : public ClientTest {
 protected:
  void SetUp() override {
    ClientTest::SetUp();
    driver.table().cuDeviceGetCount = [](int* count) {
      *count = 2;
      return CUDA_SUCCESS;
    };
    driver.table().cuDevicePrimaryCtxReset_v2 = [](CUdevice device) {
      FakeDriver& fake = FakeDriver::Get();
      fake.primary_references = 0;
      fake.primary_active[device] = false;
      if (fake.registered_in == FakeDriver::Primary()) fake.registered_in = nullptr;
      return CUDA_SUCCESS;
    };
    driver.context = nullptr;
  }
  void TearDown() override {
    if (driver.context == nullptr) driver.context = FakeDriver::Primary();
    ClientTest::TearDown();
  }
  CUresult Create(int device = 0) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return client->CreatePhysical(&handle_, 4096, &prop, 0);
  }
  void Retain() {
    CUcontext context = nullptr;
    ASSERT_EQ(client->PrimaryContextRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(context, FakeDriver::Primary());
  }
  CUmemGenericAllocationHandle handle_ = 0;
};

TEST_F(ClientPrimary, IsWhereASessionLivesThatNoContextBegan) {
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(driver.registered_in, FakeDriver::Primary());
  EXPECT_EQ(driver.primary_references, 1);
  EXPECT_EQ(driver.context, nullptr) << "to the program none is current";
  EXPECT_FALSE(driver.unrelaxed_call);
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 4096), 4096u);
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 1) << "once is enough";
  EXPECT_EQ(daemon->Count(FrameType::kHello), 1u);
}

TEST_F(ClientPrimary, IsTakenWhereTheCurrentContextIsOnAnotherGpu) {
  auto* second = reinterpret_cast<CUcontext>(0xe2);
  driver.device_of[second] = 1;
  driver.context = second;
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(driver.registered_in, FakeDriver::Primary());
  EXPECT_EQ(driver.context, second);
  CUdeviceptr at = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(client->Alloc(&at, 512), CUDA_ERROR_NOT_SUPPORTED) << "that is there";
  EXPECT_EQ(Create(1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "allocations on device 1"));
}

TEST_F(ClientPrimary, IsNotTakenForACallThatNeedsACurrentContext) {
  CUdeviceptr at = 0;
  EXPECT_EQ(client->Alloc(&at, 512), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->AllocAsync(&at, 512, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->AllocManaged(&at, 512, 1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
  // Nor is one begun by it.
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(client->Alloc(&at, 512), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->AllocManaged(&at, 512, 1), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(ClientPrimary, OfADeviceThatIsNoneTheDriverSpeaks) {
  driver.create_result = CUDA_ERROR_INVALID_DEVICE;
  EXPECT_EQ(Create(7), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(Create(-1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
}

TEST_F(ClientPrimary, EndsWithTheProgramsLastReference) {
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  Retain();
  Retain();
  EXPECT_EQ(driver.primary_references, 3);
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_TRUE(client->has_session());
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0) << "the library's goes, too";
  EXPECT_FALSE(client->has_session());
  EXPECT_EQ(daemon->Wait(FrameType::kBye, 1).size(), 1u);
}

TEST_F(ClientPrimary, IsNotThereToAProgramThatHasNotRetainedIt) {
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->PrimaryContextReset(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 1);
  EXPECT_TRUE(client->has_session());
  Retain();
  EXPECT_EQ(client->PrimaryContextReset(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_FALSE(client->has_session());
}

// What the program had retained before counts as well.
TEST_F(ClientPrimary, IsSharedWithAProgramThatHasIt) {
  Retain();
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 2);
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_FALSE(client->has_session());
}

// A reference that cannot be given back is still the program's.
TEST_F(ClientPrimary, StaysWhenTheDriverRefusesItsEnd) {
  static decltype(driver.table().cuDevicePrimaryCtxRelease_v2) release;
  static int calls;
  calls = 0;
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  Retain();
  // The first one only asks which context that is.
  release = std::exchange(driver.table().cuDevicePrimaryCtxRelease_v2, [](CUdevice device) {
    return ++calls == 2 ? CUDA_ERROR_DEINITIALIZED : release(device);
  });
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_ERROR_DEINITIALIZED);
  driver.table().cuDevicePrimaryCtxRelease_v2 = release;
  EXPECT_TRUE(client->has_session());
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_FALSE(client->has_session());
}

TEST_F(ClientPrimary, IsGivenBackWhenThereIsNoSession) {
  driver.import_result = CUDA_ERROR_INVALID_VALUE;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Create(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "no GPU memory for this process"));
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS) << "it is the driver's to say again";
}

TEST_F(ClientPrimary, CannotBeHad) {
  driver.create_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(Create(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
  driver.create_result = CUDA_SUCCESS;
  EXPECT_EQ(Create(), CUDA_SUCCESS);
}

// The session goes on in a context of the program's own when the program has ended this one.
TEST_F(ClientPrimary, LeavesTheSessionToAnotherContext) {
  ASSERT_EQ(Create(), CUDA_SUCCESS);
  auto* own = reinterpret_cast<CUcontext>(0xe2);
  ASSERT_EQ(client->ContextCreate(&own, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  Retain();
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_TRUE(client->has_session());
  EXPECT_EQ(driver.registered_in, own);
  driver.context = own;
}

// What the pool has lent as physical memory is no context's: the session goes on in a new one.
TEST_F(ClientPrimary, IsTakenAnewForMemoryThatThePoolHasLent) {
  driver.context = FakeDriver::Primary();
  Start({.handles = 32, .units_per_handle = 1});  // physical memory is lent
  driver.context = nullptr;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_EQ(client->CreatePhysical(&handle_, 2 * kUnit, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(daemon->held_units(), 2u);
  for (int round = 0; round < 3; ++round) {
    Retain();
    EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
    EXPECT_TRUE(client->has_session());
    EXPECT_EQ(driver.primary_references, 1) << "the library's";
    EXPECT_EQ(driver.registered_in, FakeDriver::Primary());
    EXPECT_EQ(daemon->held_units(), 2u);
  }
  EXPECT_EQ(client->ReleasePhysical(handle_), CUDA_SUCCESS);
  Retain();
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_FALSE(client->has_session());
  EXPECT_EQ(driver.primary_references, 0);
}

// A stream has its own context, and so has what is allocated on it.
TEST_F(ClientPrimary, IsNotNeededWhereAStreamHasAContext) {
  const CUdeviceptr at = AllocAsync(512);
  EXPECT_NE(at, 0u);
  EXPECT_EQ(driver.registered_in, driver.ContextOf(FakeDriver::Stream(1)));
  EXPECT_EQ(client->FreeAsync(at, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(AllocAsync(512), FakeDriver::Stream(2)), CUDA_SUCCESS);
  EXPECT_EQ(driver.primary_references, 0);
  EXPECT_EQ(driver.context, nullptr);
  CUdeviceptr none = 0;
  EXPECT_EQ(client->AllocAsync(&none, 512, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->Free(AllocAsync(512)), CUDA_ERROR_INVALID_CONTEXT);
  driver.context = driver.ContextOf(FakeDriver::Stream(1));
}

// What it gives is where the stream is, whatever is current.
TEST_F(ClientPrimary, AStreamOfAnotherGpuGetsNothing) {
  AllocAsync(512);
  auto* second = reinterpret_cast<CUcontext>(0xe2);
  driver.device_of[second] = 1;
  driver.stream_context[FakeDriver::Stream(9)] = second;
  driver.context = driver.ContextOf(FakeDriver::Stream(1));
  CUdeviceptr at = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(9)), CUDA_ERROR_NOT_SUPPORTED);
  testing::internal::GetCapturedStderr();
  driver.context = second;
  EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(2)), CUDA_SUCCESS);
  driver.context = driver.ContextOf(FakeDriver::Stream(1));
}

}  // namespace
}  // namespace sluice::test
