// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::Family;
using protocol::FrameType;

class ClientOutside : public ClientTest {
 protected:
  static CUmemAllocationProp DeviceMemory(int device = 0) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return prop;
  }
  /// Runs f() while the daemon reads nothing, 3,000 counted bytes after its socket is full. None of
  /// the calls waits.
  template <class F>
  void WhileNothingIsTaken(F f) {
    daemon->on_request = [this](const protocol::Header& request) {
      if (std::exchange(first_, false)) {
        asked_.set_value();
        goes_on_.get_future().wait();
      }
      daemon->AnswerAsUsual(request);
    };
    std::thread other([this] { AllocAsync(2 * kUnit); });
    asked_.get_future().wait();
    for (uintptr_t i = 0; i < 3000; ++i) {  // more than any socket takes
      void* at = reinterpret_cast<void*>(0x100000 + 0x1000 * i);
      EXPECT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &at, 1,
                                     [] { return CUDA_SUCCESS; }),
                CUDA_SUCCESS);
    }
    f();
    goes_on_.set_value();
    other.join();
  }
  CUmemGenericAllocationHandle Create(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = DeviceMemory();
    EXPECT_EQ(client->CreatePhysical(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  uint64_t Physical(uint64_t expected) { return daemon->WaitCharged(Family::kPhysical, expected); }

 private:
  // Not a function's: the daemon's thread may still be on its way out of on_request.
  std::promise<void> asked_;
  std::promise<void> goes_on_;
  bool first_ = true;
};

TEST_F(ClientOutside, ManagedMemoryIsChargedUntilItIsFreed) {
  CUdeviceptr at = 0;
  ASSERT_EQ(client->AllocManaged(&at, 1000, 1), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 1000), 1000u);
  driver.foreign_frees.clear();
  static_cast<void>(client->Free(at));
  EXPECT_EQ(driver.foreign_frees.size(), 1u);
}

TEST_F(ClientOutside, WhatTheDriverRefusesIsNotPaidFor) {
  CUdeviceptr at = 0;
  driver.create_result = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(client->AllocManaged(&at, 1000, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 1u);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 0), 0u);
  EXPECT_EQ(daemon->Wait(FrameType::kUncharge, 1).size(), 1u);
}

TEST_F(ClientOutside, PhysicalMemoryThatTheDriverRefusesIsNotPaidFor) {
  driver.create_result = CUDA_ERROR_INVALID_VALUE;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = DeviceMemory();
  EXPECT_EQ(client->CreatePhysical(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 1u);
  EXPECT_EQ(Physical(0), 0u);
  EXPECT_EQ(daemon->Wait(FrameType::kUncharge, 1).size(), 1u);
}

TEST_F(ClientOutside, WhatTheDaemonRefusesTheDriverIsNotAskedFor) {
  testing::internal::CaptureStderr();
  CUdeviceptr at = 0;
  const uint64_t next = driver.next_handle;
  EXPECT_EQ(client->AllocManaged(&at, 2 << 20, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver.next_handle, next);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "nothing is left outside the pool"));
}

TEST_F(ClientOutside, PhysicalMemoryIsPaidForWhileItIsBeingMapped) {
  static Client* other;
  static CUmemGenericAllocationHandle last;
  static decltype(driver.table().cuMemMap) map;
  last = Create(4096);
  other = client.get();
  // Another thread gives up the last handle once the driver has mapped it.
  map = std::exchange(driver.table().cuMemMap,
                      [](CUdeviceptr at, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
                        const CUresult result = map(at, bytes, offset, handle, flags);
                        EXPECT_EQ(other->ReleasePhysical(last), CUDA_SUCCESS);
                        return result;
                      });
  EXPECT_EQ(client->MapPhysical(0x10000, 4096, 0, last, 0), CUDA_SUCCESS);
  driver.table().cuMemMap = map;
  EXPECT_EQ(Physical(4096), 4096u);
  Create(512);  // what came before this was heard
  EXPECT_EQ(Physical(4096 + 512), 4096u + 512u);
  EXPECT_EQ(client->UnmapPhysical(0x10000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(Physical(512), 512u);
}

TEST_F(ClientOutside, PhysicalMemoryIsPaidForUntilTheLastHandleAndMappingAreGone) {
  const auto handle = Create(4096);
  EXPECT_EQ(Physical(4096), 4096u);
  EXPECT_EQ(client->MapPhysical(0x10000, 4096, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->MapPhysical(0x20000, 4096, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  // Another handle for what is mapped there, by another number.
  CUmemGenericAllocationHandle again = 0;
  EXPECT_EQ(client->RetainPhysical(&again, reinterpret_cast<void*>(0x10800)), CUDA_SUCCESS);
  EXPECT_NE(again, handle);
  EXPECT_EQ(client->UnmapPhysical(0x10000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(client->UnmapPhysical(0x20000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(daemon->Count(FrameType::kUncharge), 0u);
  EXPECT_EQ(client->ReleasePhysical(again), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientOutside, OneUnmapEndsSeveralMappings) {
  const auto a = Create(4096);
  const auto b = Create(8192);
  EXPECT_EQ(client->MapPhysical(0x10000, 4096, 0, a, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->MapPhysical(0x11000, 8192, 0, b, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(a), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(b), CUDA_SUCCESS);
  EXPECT_EQ(Physical(4096 + 8192), 4096u + 8192u);
  EXPECT_EQ(client->UnmapPhysical(0x10000, 4096 + 8192), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientOutside, ImportedMemoryIsCountedWhenItIsMapped) {
  AllocAsync(512);
  CUmemGenericAllocationHandle handle = 0;
  driver.next_handle = 0x900;
  ASSERT_EQ(client->ImportPhysical(&handle, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(client->MapPhysical(0x10000, 4096, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kImported, 4096), 4096u);
  EXPECT_EQ(client->UnmapPhysical(0x10000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kImported, 0), 0u);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 0u);
}

TEST_F(ClientOutside, MemoryOfTheHostIsNotTheGpus) {
  AllocAsync(512);
  CUmemAllocationProp prop = DeviceMemory();
  prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;  // not the device: the driver's to judge
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(client->CreatePhysical(&handle, 4096, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 0u);
  prop = DeviceMemory(1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(client->CreatePhysical(&handle, 4096, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "allocations on device 1"));
}

TEST_F(ClientOutside, HostMemoryIsCountedFromBeforeTheSession) {
  void* at = reinterpret_cast<void*>(0x7000);
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &at, 100, fine), CUDA_SUCCESS);
  AllocAsync(512);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 100), 100u);
  EXPECT_EQ(client->FreeOutside(Thing::kHost, at, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 0), 0u);
}

TEST_F(ClientOutside, AHandleMayBeSomebodyElsesBeforeTheCallThatGaveItUpReturns) {
  AllocAsync(512);
  void* at = reinterpret_cast<void*>(0x7000);
  const auto fine = [] { return CUDA_SUCCESS; };
  const auto pin = [&](uint64_t bytes) {
    return client->AllocCounted(Family::kHostPinned, Thing::kHost, &at, bytes, fine);
  };
  EXPECT_EQ(pin(100), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeOutside(Thing::kHost, at, [&] { return pin(7); }), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 7), 7u) << "another thread has it now";
  EXPECT_EQ(client->FreeOutside(Thing::kHost, at, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 0), 0u);
  // A call that fails gives nothing up.
  EXPECT_EQ(pin(100), CUDA_SUCCESS);
  const auto fails = [] { return CUDA_ERROR_INVALID_VALUE; };
  EXPECT_EQ(client->FreeOutside(Thing::kHost, at, fails), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->FreeOutside(Thing::kHost, at, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 0), 0u);
}

TEST_F(ClientOutside, APhysicalHandleThatComesAgainIsOtherMemory) {
  driver.next_handle = 0x600;
  const auto first = Create(4096);
  EXPECT_EQ(client->MapPhysical(0x10000, 4096, 0, first, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(first), CUDA_SUCCESS);  // the mapping holds it
  driver.next_handle = 0x600;
  const auto second = Create(8192);
  ASSERT_EQ(second, first);
  EXPECT_EQ(client->UnmapPhysical(0x10000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(Physical(8192), 8192u);
  EXPECT_EQ(client->ReleasePhysical(second), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientOutside, FurtherContextsAreChargedWheneverTheyWereMade) {
  const auto fine = [] { return CUDA_SUCCESS; };
  auto* early = reinterpret_cast<CUcontext>(0xe1);
  auto* own = driver.context;
  EXPECT_EQ(client->ContextCreate(&early, fine), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextCreate(&own, fine), CUDA_SUCCESS);
  AllocAsync(512);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 1), 1u)
      << "the session's own is the daemon's to charge";
  CUcontext primary = nullptr;
  EXPECT_EQ(client->PrimaryContextRetain(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(client->PrimaryContextRetain(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 2), 2u);
  EXPECT_EQ(client->ContextDestroy(early), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 1), 1u);
}

/// Two contexts, each with memory of its own outside the pool, and physical memory of no context's.
class TwoContexts : public ClientOutside {
 protected:
  void SetUp() override {
    ClientOutside::SetUp();
    const auto fine = [] { return CUDA_SUCCESS; };
    AllocAsync(512);  // the session lives in the first one
    ASSERT_EQ(client->AllocOutside(Family::kArray, Thing::kArray, &first_array_, 100, fine),
              CUDA_SUCCESS);
    ASSERT_EQ(client->ContextCreate(&second_, fine), CUDA_SUCCESS);
    driver.stream_context[stream_] = second_;
    first_ = std::exchange(driver.context, second_);
    ASSERT_EQ(client->AllocOutside(Family::kArray, Thing::kArray, &second_array_, 1000, fine),
              CUDA_SUCCESS);
    ASSERT_EQ(client->AllocManaged(&managed_, 4000, 1), CUDA_SUCCESS);
    ASSERT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &host_, 30, fine),
              CUDA_SUCCESS);
    handle_ = Create(8192);
    EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1100), 1100u);
  }

  CUcontext first_ = nullptr;
  CUcontext second_ = reinterpret_cast<CUcontext>(0xe2);
  const CUstream stream_ = FakeDriver::Stream(9);  // of the second
  CUarray first_array_ = reinterpret_cast<CUarray>(0x7100);
  CUarray second_array_ = reinterpret_cast<CUarray>(0x7200);
  CUdeviceptr managed_ = 0;
  void* host_ = reinterpret_cast<void*>(0x7400);
  CUmemGenericAllocationHandle handle_ = 0;
};

TEST_F(TwoContexts, AFurtherOneEndsWithWhatItHas) {
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 30), 30u);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 0), 0u);
  driver.context = first_;
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 100), 100u);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 0), 0u);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 0), 0u);
  EXPECT_EQ(Physical(8192), 8192u) << "belongs to no context";
  // Its handle may still be given up; that is nobody's gain.
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->FreeOutside(Thing::kArray, second_array_, fine), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeOutside(Thing::kArray, first_array_, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 0), 0u);
}

// The driver has freed what the context had, and gives one of the handles to somebody else before
// the library has heard of the end.
TEST_F(TwoContexts, AHandleThatComesAgainBeforeTheEndIsKnownIsChargedOnce) {
  driver.on_destroyed = [this] {
    driver.context = first_;
    EXPECT_EQ(client->AllocOutside(Family::kArray, Thing::kArray, &second_array_, 300,
                                   [] { return CUDA_SUCCESS; }),
              CUDA_SUCCESS);
    EXPECT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &host_, 5,
                                   [] { return CUDA_SUCCESS; }),
              CUDA_SUCCESS);
  };
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 400), 400u);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 5), 5u);
}

// The session moves: the second one is its own now, which the daemon charges by itself.
TEST_F(TwoContexts, TheSessionsEndsAndTheOtherKeepsWhatItHas) {
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 0), 0u);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1000), 1000u);
  AllocAsync(512);
  EXPECT_EQ(daemon->Count(FrameType::kBye), 0u);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 1u);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 4000), 4000u);
  EXPECT_EQ(Physical(8192), 8192u);
}

TEST_F(TwoContexts, TheSessionEndsAndTheOtherKeepsWhatItHas) {
  driver.register_result = CUDA_ERROR_UNKNOWN;  // it cannot move
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  driver.register_result = CUDA_SUCCESS;
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1000), 1000u) << "it lives on";
  const size_t charges = daemon->Count(FrameType::kCharge);
  // The next session is in the second one, and has been charged for what lives on.
  AllocAsync(512, stream_);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), charges);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1000), 1000u);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 4000), 4000u);
  EXPECT_EQ(Physical(8192), 8192u);
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->FreeOutside(Thing::kArray, first_array_, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1000), 1000u);
  EXPECT_EQ(client->FreeOutside(Thing::kArray, second_array_, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 0), 0u);
}

// Handles are addresses: another thread may get this one for a new context before the thread that
// destroyed the old one has come back from the driver.
TEST_F(TwoContexts, ANewOneWithTheSameHandleKeepsWhatItHas) {
  const auto fine = [] { return CUDA_SUCCESS; };
  auto* array = reinterpret_cast<CUarray>(0x7300);
  driver.on_destroyed = [&] {
    EXPECT_EQ(client->ContextCreate(&second_, fine), CUDA_SUCCESS);
    EXPECT_EQ(client->AllocOutside(Family::kArray, Thing::kArray, &array, 50, fine), CUDA_SUCCESS);
    EXPECT_EQ(client->CaptureBegin(stream_, fine), CUDA_SUCCESS);
  };
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 150), 150u);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 1), 1u);
  EXPECT_EQ(client->open_captures(), 1u);
  EXPECT_EQ(client->FreeOutside(Thing::kArray, array, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 100), 100u);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 0u);
  driver.context = first_;
}

TEST_F(TwoContexts, OneThatTheDriverDoesNotDestroyKeepsWhatItHas) {
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->CaptureBegin(stream_, fine), CUDA_SUCCESS);
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(client->ContextDestroy(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  EXPECT_TRUE(client->has_session());
  EXPECT_EQ(client->open_captures(), 1u);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 1100), 1100u);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  driver.context = first_;
  EXPECT_EQ(client->open_captures(), 0u);
  EXPECT_EQ(daemon->WaitCharged(Family::kArray, 100), 100u);
}

/// A daemon that takes nothing for a while is told afterwards, and of each context by itself: what
/// one costs is the daemon's to know.
TEST_F(ClientOutside, WhatTheDaemonDidNotTakeIsSaidLater) {
  const auto fine = [] { return CUDA_SUCCESS; };
  CUcontext contexts[] = {reinterpret_cast<CUcontext>(0xe1), reinterpret_cast<CUcontext>(0xe2)};
  AllocAsync(512);
  for (CUcontext& context : contexts) {
    EXPECT_EQ(client->ContextCreate(&context, fine), CUDA_SUCCESS);
  }
  WhileNothingIsTaken([&] {
    for (CUcontext context : contexts) EXPECT_EQ(client->ContextDestroy(context), CUDA_SUCCESS);
  });
  Create(4096);
  Create(4096);
  EXPECT_EQ(daemon->WaitCharged(Family::kContext, 0), 0u);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 3000), 3000u);
  for (const auto& bytes : daemon->Wait(FrameType::kUncharge, 2)) {
    protocol::Uncharge frame{};
    memcpy(&frame, bytes.data(), sizeof frame);
    EXPECT_EQ(frame.bytes, 1u);
  }
  EXPECT_EQ(daemon->Count(FrameType::kUncharge), 2u);
}

/// Nobody asks for anything afterwards: the next launch says it.
TEST_F(ClientOutside, WhatTheDaemonDidNotTakeIsSaidBeforeALaunch) {
  const CUmemGenericAllocationHandle handle = Create(4096);
  Launch("has nothing to say");
  WhileNothingIsTaken([&] { EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS); });
  // The daemon has yet to read what is on its way; a launch meanwhile finds no room.
  for (int i = 0; i < 1'000'000 && daemon->Counted(Family::kHostPinned) != 3000; ++i) {
    Launch("says it");
    std::this_thread::yield();
  }
  EXPECT_EQ(daemon->WaitCharged(Family::kPhysical, 0), 0u);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 3000), 3000u);
}

TEST_F(ClientOutside, AContextThatTheReserveHasNoRoomForIsRefused) {
  Start({.outside_bytes = 0});
  AllocAsync(512);
  auto* other = reinterpret_cast<CUcontext>(0xe1);
  bool issued = false;
  const auto issue = [&] {
    issued = true;
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->ContextCreate(&other, issue), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(issued);
}

TEST_F(ClientOutside, ANewSessionIsChargedForWhatOutlivesAContext) {
  const auto handle = Create(4096);
  CUdeviceptr managed = 0;
  ASSERT_EQ(client->AllocManaged(&managed, 1000, 1), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->WaitCharged(Family::kManaged, 0), 0u);
  EXPECT_EQ(Physical(4096), 4096u) << "it needs no context";
  AllocAsync(512);
  EXPECT_EQ(Physical(4096), 4096u);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 2u) << "charged once";
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

// To a daemon from before, a process that leaves something on its account never comes back.
TEST_F(ClientOutside, ADaemonFromBeforeKeepsNothingForTheNextSession) {
  Start({.minor = protocol::kRestMinor - 1});
  const auto handle = Create(4096);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
  AllocAsync(512);
  EXPECT_EQ(Physical(4096), 4096u);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientOutside, WhatIsReleasedBetweenSessionsIsSaidAtOnce) {
  const auto first = Create(4096);
  const auto second = Create(8192);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(first), CUDA_SUCCESS);
  EXPECT_EQ(Physical(8192), 8192u);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 1u) << "no session for that";
  AllocAsync(512);
  EXPECT_EQ(client->ReleasePhysical(second), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
  EXPECT_EQ(daemon->Count(FrameType::kUncharge), 2u);
}

TEST_F(ClientOutside, LookupsOfUnseenFunctionsAreCountedFromBeforeTheSession) {
  client->CountUnseen(true);
  client->CountUnseen(false);
  AllocAsync(512);
  EXPECT_EQ(daemon->WaitCounted(Family::kUnseenNames, 1), 1u);
  EXPECT_EQ(daemon->WaitCounted(Family::kUnseenLookups, 2), 2u);
}

// dlsym is asked by anybody at any time, also by a thread that holds a lock of this library.
TEST_F(ClientOutside, ALookupSendsNothingAndTheNextRequestSaysThemAll) {
  AllocAsync(512);
  const size_t before = daemon->Count(FrameType::kCount);
  for (int i = 0; i < 5; ++i) client->CountUnseen(true);
  const auto handle = Create(4096);
  EXPECT_EQ(daemon->WaitCounted(Family::kUnseenNames, 5), 5u);
  EXPECT_EQ(daemon->WaitCounted(Family::kUnseenLookups, 5), 5u);
  EXPECT_EQ(daemon->Count(FrameType::kCount), before + 2);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
  EXPECT_EQ(daemon->Count(FrameType::kCount), before + 2) << "said once";
}

TEST_F(ClientOutside, ADaemonFromBeforeIsNotToldOfUnseenFunctions) {
  Start({.minor = protocol::kRestMinor - 1});
  client->CountUnseen(true);
  AllocAsync(512);
  client->CountUnseen(true);
  void* host = reinterpret_cast<void*>(0x7000);
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &host, 9, fine), CUDA_SUCCESS);
  EXPECT_EQ(daemon->WaitCounted(Family::kHostPinned, 9), 9u);
  EXPECT_EQ(daemon->Count(FrameType::kCount), 1u);
  EXPECT_EQ(client->FreeOutside(Thing::kHost, host, fine), CUDA_SUCCESS);
}

TEST_F(ClientOutside, WhatIsReleasedBetweenSessionsIsNobodysCharge) {
  Start({.limit_units = 16, .limit_bytes = 16 * kUnit});
  const auto handle = Create(4096);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  size_t free_bytes = 0;
  size_t total = 0;
  AllocAsync(kUnit);
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 15 * kUnit);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientOutside, ASessionWithoutRoomForWhatIsThereIsNone) {
  Start({.outside_bytes = 0});
  const auto fine = [] { return CUDA_SUCCESS; };
  auto* other = reinterpret_cast<CUcontext>(0xe1);
  EXPECT_EQ(client->ContextCreate(&other, fine), CUDA_SUCCESS);
  CUdeviceptr at = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_FALSE(client->has_session());
  }
  EXPECT_EQ(daemon->Count(FrameType::kUncharge), 0u) << "nothing was charged";
  EXPECT_EQ(client->ContextDestroy(other), CUDA_SUCCESS);
  AllocAsync(512);
}

TEST_F(ClientOutside, AGivenLimitShowsWhatIsOutside) {
  Start({.limit_units = 16, .limit_bytes = 16 * kUnit});
  Create(3 * kUnit);
  AllocAsync(kUnit);
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 16 * kUnit);
  EXPECT_EQ(free_bytes, 12 * kUnit);
}

TEST_F(ClientOutside, ADaemonFromBeforeIsNotAskedWhatItDoesNotKnow) {
  Start({.minor = 0});
  testing::internal::CaptureStderr();
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = DeviceMemory();
  EXPECT_EQ(client->CreatePhysical(&handle, 4096, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocManaged(&at, 1000, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "newer sluice-noded"));
  void* host = reinterpret_cast<void*>(0x7000);
  const auto fine = [] { return CUDA_SUCCESS; };
  EXPECT_EQ(client->AllocCounted(Family::kHostPinned, Thing::kHost, &host, 9, fine), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeOutside(Thing::kHost, host, fine), CUDA_SUCCESS);
  for (const FrameType type : {FrameType::kCharge, FrameType::kUncharge, FrameType::kCount}) {
    EXPECT_EQ(daemon->Count(type), 0u);
  }
}

}  // namespace
}  // namespace sluice::test
