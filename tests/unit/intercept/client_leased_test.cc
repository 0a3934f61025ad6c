// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <chrono>
#include <future>
#include <vector>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::Family;
using protocol::FrameType;

/// Physical memory of the program's own, in a pool whose units are handles: 8 units of 64 KiB.
class ClientLeased : public ClientTest {
 protected:
  void SetUp() override { StartWith({}); }
  void StartWith(const Client::Settings& settings, uint32_t units_per_handle = 1) {
    Start({.handles = 8, .units_per_handle = units_per_handle}, settings);
  }
  static CUmemAllocationProp Plain() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return prop;
  }
  static CUmemAllocationProp Exportable() {
    CUmemAllocationProp prop = Plain();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
  }
  CUmemGenericAllocationHandle Create(size_t bytes, const CUmemAllocationProp& prop = Plain()) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(client->CreatePhysical(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  CUresult Map(CUmemGenericAllocationHandle handle, size_t bytes, CUdeviceptr at = kAt) {
    return client->MapPhysical(at, bytes, 0, handle, 0);
  }
  /// Asks the daemon for what only fits when everything else is free.
  CUresult AllocAll() {
    CUdeviceptr at = 0;
    return client->Alloc(&at, 8 * kUnit);
  }

  static constexpr CUdeviceptr kAt = 0x7000000000;
};

TEST_F(ClientLeased, WholeUnitsAreLeasedAndNotCharged) {
  const auto handle = Create(3 * kUnit);
  EXPECT_EQ(daemon->held_units(), 3u);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 0u);
  EXPECT_EQ(daemon->client->live_bytes.load(), 3 * kUnit);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ClientLeased, UnitsNeedNotLieTogether) {
  CUdeviceptr blocks[8] = {};
  for (CUdeviceptr& block : blocks) block = AllocAsync(kUnit);
  for (const int gap : {1, 3, 6}) EXPECT_EQ(client->Free(blocks[gap]), CUDA_SUCCESS);
  const auto handle = Create(3 * kUnit);
  EXPECT_EQ(daemon->client->live_bytes.load(), 8 * kUnit);
  CUdeviceptr at = 0;
  EXPECT_EQ(client->Alloc(&at, 512), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
}

TEST_F(ClientLeased, UnitsOfAnotherSizeThanHandlesCannotBe) {
  StartWith({}, 2);
  Create(2 * kUnit);
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 2 * kUnit), 2 * kUnit);
}

TEST_F(ClientLeased, SparseAndCompressibleMemoryIsCharged) {
  CUmemAllocationProp prop = Plain();
  prop.allocFlags.usage = 1;
  Create(kUnit, prop);
  prop = Plain();
  prop.allocFlags.compressionType = 1;
  Create(kUnit, prop);
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 2 * kUnit), 2 * kUnit);
}

TEST_F(ClientLeased, ExportableMemoryIsLeasedWhenItIsWanted) {
  Create(kUnit, Exportable());
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, kUnit), kUnit);
  StartWith({.lease_exportable = true});
  const auto handle = Create(kUnit, Exportable());
  EXPECT_EQ(daemon->held_units(), 1u);
  testing::internal::CaptureStderr();
  int fd = -1;
  EXPECT_EQ(client->ExportPhysical(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "cannot be exported"));
  CUmemAllocationProp prop{};
  EXPECT_EQ(client->PhysicalProperties(&prop, handle), CUDA_SUCCESS);
  EXPECT_EQ(prop.requestedHandleTypes, 0);
  EXPECT_EQ(client->PhysicalProperties(&prop, handle + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ClientLeased, WhatCannotBeLeasedIsSaidToWhoWantedIt) {
  StartWith({.lease_exportable = true});
  testing::internal::CaptureStderr();
  Create(kUnit / 2, Exportable());
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "charged outside the pool"));
}

TEST_F(ClientLeased, EveryUnitIsMappedByItself) {
  const int arena = driver.mapped;
  const auto handle = Create(3 * kUnit);
  ASSERT_EQ(driver.mapped, arena + 8) << "the pool";
  ASSERT_EQ(Map(handle, 3 * kUnit), CUDA_SUCCESS);
  EXPECT_EQ(driver.mapped, arena + 8 + 3);
}

TEST_F(ClientLeased, OnlyAllOfIt) {
  const auto handle = Create(2 * kUnit);
  EXPECT_EQ(Map(handle, kUnit), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Map(handle, 3 * kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->MapPhysical(kAt, 2 * kUnit, kUnit, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(client->MapPhysical(kAt, 2 * kUnit, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(Map(handle, 2 * kUnit), CUDA_SUCCESS);
  EXPECT_EQ(client->UnmapPhysical(kAt, kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->UnmapPhysical(kAt + kUnit, kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->UnmapPhysical(kAt, 2 * kUnit), CUDA_SUCCESS);
}

TEST_F(ClientLeased, TheLastHandleOrMappingGivesItBackAndWaitsForNothing) {
  const auto handle = Create(2 * kUnit);
  ASSERT_EQ(Map(handle, 2 * kUnit), CUDA_SUCCESS);
  ASSERT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(client->RetainPhysical(&again, reinterpret_cast<void*>(kAt + kUnit + 8)), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  const int before = driver.synchronised;
  ASSERT_EQ(client->UnmapPhysical(kAt, 2 * kUnit), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 2 * kUnit);
  ASSERT_EQ(client->ReleasePhysical(again), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, before);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
  EXPECT_EQ(AllocAll(), CUDA_SUCCESS);
  EXPECT_GT(driver.synchronised, before) << "whoever needs it finds out that the GPU is done";
}

TEST_F(ClientLeased, WhileTheGpuMayUseItNobodyGetsIt) {
  const auto handle = Create(8 * kUnit);
  ASSERT_EQ(Map(handle, 8 * kUnit), CUDA_SUCCESS);
  ASSERT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  ASSERT_EQ(client->UnmapPhysical(kAt, 8 * kUnit), CUDA_SUCCESS);
  driver.synchronise_result = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(AllocAll(), CUDA_ERROR_OUT_OF_MEMORY);
  driver.synchronise_result = CUDA_SUCCESS;
  EXPECT_EQ(AllocAll(), CUDA_SUCCESS);
}

TEST_F(ClientLeased, ACaptureKeepsItUntilItsEnd) {
  const auto handle = Create(8 * kUnit);
  ASSERT_EQ(Map(handle, 8 * kUnit), CUDA_SUCCESS);
  const CUstream stream = FakeDriver::Stream(1);
  ASSERT_EQ(client->CaptureBegin(stream,
                                 [&] {
                                   driver.capturing.insert(stream);
                                   return CUDA_SUCCESS;
                                 }),
            CUDA_SUCCESS);
  ASSERT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  ASSERT_EQ(client->UnmapPhysical(kAt, 8 * kUnit), CUDA_SUCCESS);
  const int before = driver.synchronised;
  EXPECT_EQ(AllocAll(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver.synchronised, before) << "that would break the capture";
  ASSERT_EQ(client->CaptureEnd(stream,
                               [&] {
                                 driver.capturing.erase(stream);
                                 return CUDA_SUCCESS;
                               }),
            CUDA_SUCCESS);
  EXPECT_EQ(AllocAll(), CUDA_SUCCESS);
}

TEST_F(ClientLeased, WhatWasNeverMappedIsFreeAtOnce) {
  const auto handle = Create(8 * kUnit);
  driver.synchronise_result = CUDA_ERROR_LAUNCH_FAILED;
  ASSERT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(AllocAll(), CUDA_SUCCESS);
}

TEST_F(ClientLeased, BlocksOfThePoolHaveNoHandle) {
  const CUdeviceptr block = AllocAsync(kUnit);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(client->RetainPhysical(&handle, reinterpret_cast<void*>(block)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->ShareRange(block, kUnit), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(client->ShareRange(kAt, kUnit), CUDA_SUCCESS);
  const auto leased = Create(kUnit);
  ASSERT_EQ(Map(leased, kUnit), CUDA_SUCCESS);
  EXPECT_EQ(client->ShareRange(kAt + 8, 8), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(client->BindMulticast(leased), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(client->BindMulticast(0x1000), CUDA_SUCCESS);
}

TEST_F(ClientLeased, AFailedMappingLeavesNothing) {
  const auto handle = Create(3 * kUnit);
  const int before = driver.mapped;
  static int left = 0;
  static auto real = driver.table().cuMemMap;
  left = 2;
  driver.table().cuMemMap = [](CUdeviceptr at, size_t bytes, size_t offset,
                               CUmemGenericAllocationHandle unit, unsigned long long flags) {
    return left-- > 0 ? real(at, bytes, offset, unit, flags) : CUDA_ERROR_ALREADY_MAPPED;
  };
  EXPECT_EQ(Map(handle, 3 * kUnit), CUDA_ERROR_ALREADY_MAPPED);
  driver.table().cuMemMap = real;
  EXPECT_EQ(driver.mapped, before);
  ASSERT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
}

TEST_F(ClientLeased, TheSessionsEndTakesItBackFromTheProgram) {
  const auto handle = Create(2 * kUnit);
  ASSERT_EQ(Map(handle, 2 * kUnit), CUDA_SUCCESS);
  ASSERT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(driver.mapped, 0) << "two units, and the arena";
  daemon->Wait(FrameType::kBye, 1);  // what was said before it has come
  EXPECT_EQ(daemon->held_units(), 0u);
  // What the program gives up afterwards is nobody's any more.
  const int after = driver.mapped;
  EXPECT_EQ(client->UnmapPhysical(kAt, 2 * kUnit), CUDA_SUCCESS);
  EXPECT_EQ(driver.mapped, after);
  EXPECT_EQ(Map(handle, 2 * kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
}

TEST_F(ClientLeased, WhatCannotBeTakenBackIsNotGivenBack) {
  const auto handle = Create(2 * kUnit);
  ASSERT_EQ(Map(handle, 2 * kUnit), CUDA_SUCCESS);
  static auto real = driver.table().cuMemUnmap;
  driver.table().cuMemUnmap = [](CUdeviceptr at, size_t bytes) {
    return at == kAt ? CUDA_ERROR_UNKNOWN : real(at, bytes);
  };
  testing::internal::CaptureStderr();
  ASSERT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "could not be unmapped"));
  driver.table().cuMemUnmap = real;
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->held_units(), 2u);
}

TEST_F(ClientLeased, NoMoreThanThereIs) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = Plain();
  EXPECT_EQ(client->CreatePhysical(&handle, 9 * kUnit, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  AllocAsync(kUnit);
  EXPECT_EQ(client->CreatePhysical(&handle, 8 * kUnit, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(daemon->client->live_bytes.load(), kUnit) << "what it had got so far";
}

// A driver that takes its time holds nobody up: while it is asked about physical memory, of the
// pool or not, other threads charge and count what they have.
TEST_F(ClientLeased, WhileTheDriverWorksOthersGoOn) {
  int calls = 0;
  uintptr_t host = 0x7000;
  std::vector<std::future<CUresult>> others;
  driver.on_physical = [&] {
    ++calls;
    others.push_back(std::async(std::launch::async, [this, key = host += 0x1000] {
      const auto* pointer = reinterpret_cast<void*>(key);
      return client->AllocCounted(Family::kHostPinned, Thing::kHost, &pointer, 1,
                                  [] { return CUDA_SUCCESS; });
    }));
    EXPECT_EQ(others.back().wait_for(std::chrono::seconds(2)), std::future_status::ready)
        << "in the driver's call number " << calls;
  };
  for (const bool leased : {true, false}) {
    const auto handle = Create(kUnit, leased ? Plain() : Exportable());
    ASSERT_EQ(Map(handle, kUnit), CUDA_SUCCESS);
    CUmemGenericAllocationHandle again = 0;
    EXPECT_EQ(client->RetainPhysical(&again, reinterpret_cast<void*>(kAt)), CUDA_SUCCESS);
    EXPECT_EQ(client->ReleasePhysical(again), CUDA_SUCCESS);
    EXPECT_EQ(client->UnmapPhysical(kAt, kUnit), CUDA_SUCCESS);
    EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  }
  driver.on_physical = nullptr;
  EXPECT_GE(calls, 8);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 0), 0u);
}

// One thread asks for a handle by an address, and before it has heard of it, another one gives up
// all that there was: the memory lives on in that handle, and is paid for.
TEST_F(ClientLeased, AHandleThatIsJustBeingGivenKeepsItsMemory) {
  const auto handle = Create(kUnit, Exportable());
  ASSERT_EQ(Map(handle, kUnit), CUDA_SUCCESS);
  for (const bool given : {false, true}) {
    driver.retain_result = given ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    driver.on_physical = [&] {
      driver.on_physical = nullptr;
      if (!given) return;
      EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
      EXPECT_EQ(client->UnmapPhysical(kAt, kUnit), CUDA_SUCCESS);
    };
    CUmemGenericAllocationHandle again = 0;
    EXPECT_EQ(client->RetainPhysical(&again, reinterpret_cast<void*>(kAt)), driver.retain_result);
    CUdeviceptr managed = 0;  // what was said to the daemon before is heard before this
    EXPECT_EQ(client->AllocManaged(&managed, 1, 1), CUDA_SUCCESS);
    EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, kUnit), kUnit);
    if (given) {
      EXPECT_EQ(client->ReleasePhysical(again), CUDA_SUCCESS);
    }
  }
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 0), 0u);
}

}  // namespace
}  // namespace sluice::test
