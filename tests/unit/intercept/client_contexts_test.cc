// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/intercept/contexts_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;

TEST_F(ClientContexts, AFreeWaitsForAllOfThem) {
  const CUdeviceptr a = AllocPool();
  MakeSecond();
  driver.Enqueue(other_, [] {});
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(driver.Pending(other_), 0u) << "it may have been at work on the block";
  EXPECT_TRUE(HaveAtOnce());
}

TEST_F(ClientContexts, AFreeInAnotherOneWaitsForTheOwner) {
  const CUdeviceptr a = AllocPool();
  MakeSecond();
  driver.Enqueue(own_, [] {});
  const CUcontext first = std::exchange(driver.context, second_);
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(driver.Pending(own_), 0u);
  driver.context = first;
}

// What is freed beside a capture was freed on no known stream. One context's synchronisation says
// nothing of another's work, which may go through calls that nobody sees.
TEST_F(ClientContexts, OneDoesNotSpeakForTwo) {
  FreeBesideACapture(AllocPool());
  driver.immediate = true;
  EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(HaveAtOnce()) << "there is only one";
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  for (const bool before : {true, false}) {
    Start({});
    if (before) MakeSecond();
    const CUdeviceptr a = AllocPool();
    if (!before) MakeSecond();
    FreeBesideACapture(a);
    EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
    EXPECT_FALSE(HaveAtOnce());
  }
}

TEST_F(ClientContexts, OneThatIsGoneIsNotWaitedFor) {
  MakeSecond();
  const CUdeviceptr a = AllocPool();
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  FreeBesideACapture(a);
  driver.immediate = true;
  EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(HaveAtOnce());
}

TEST_F(ClientContexts, WhatCannotBeWaitedForStays) {
  const CUdeviceptr a = AllocPool();
  MakeSecond();
  FreeBesideACapture(a);
  driver.immediate = true;
  driver.synchronise_result = CUDA_ERROR_UNKNOWN;
  CUdeviceptr b = 0;
  EXPECT_EQ(client->AllocAsync(&b, kPool, own_), CUDA_ERROR_OUT_OF_MEMORY);
  driver.synchronise_result = CUDA_SUCCESS;
  EXPECT_EQ(client->AllocAsync(&b, kPool, own_), CUDA_SUCCESS);
}

TEST_F(ClientContexts, AStreamBelongsToItsOwnWhicheverIsCurrent) {
  const CUdeviceptr a = AllocAsync(kPool, own_);
  MakeSecond();
  EXPECT_EQ(client->FreeAsync(a, other_), CUDA_SUCCESS);  // its first use, in the first context
  driver.immediate = true;
  EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  const int before = driver.marks;
  EXPECT_EQ(AllocAsync(kPool, own_), a);
  EXPECT_GT(driver.marks, before) << "only a mark on that stream can say that it is done";
}

TEST_F(ClientContexts, AStreamThatEndedWithItsOwnIsNotMarked) {
  const CUdeviceptr a = AllocAsync(kPool, own_);
  MakeSecond();
  EXPECT_EQ(client->FreeAsync(a, other_), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(kPool, own_), a) << "what was on it is done";
  EXPECT_EQ(driver.Pending(other_), 0u) << "the driver may have freed its handle";
}

// The session ends while work of another context may begin: it finds nothing, rather than what the
// next job has there.
TEST_F(ClientContexts, NothingIsGivenBackWhileItIsMapped) {
  AllocAsync(3 * kUnit);
  bool held = false;
  driver.on_unmap = [&] { held = daemon->client->held_bytes.load() == 3 * kUnit; };
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_TRUE(held);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->held_units(), 0u);
}

// A mark that another thread is about to queue is not to be in a graph.
TEST_F(ClientContexts, ACaptureBeginsBehindTheMarksThatAreUnderWay) {
  AllocAsync(512, own_);
  std::atomic<bool> began{false};
  std::thread capturer;
  driver.on_write = [&] {
    capturer = std::thread([&] {
      EXPECT_EQ(client->CaptureBegin(own_,
                                     [&] {
                                       began = true;
                                       return CUDA_SUCCESS;
                                     }),
                CUDA_SUCCESS);
    });
    while (client->open_captures() == 0) std::this_thread::yield();
    for (int i = 0; i < 500 && !began; ++i) std::this_thread::yield();
    EXPECT_FALSE(began);
  };
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("kernel", own_);
  ASSERT_TRUE(capturer.joinable()) << "no mark was queued";
  capturer.join();
  EXPECT_TRUE(began);
}

// Nor one whose thread has found that the stream is in no capture yet.
TEST_F(ClientContexts, NoMarkIsQueuedWhileAStreamEntersACapture) {
  AllocAsync(512, own_);
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kPressure;
  const auto enter = [this] {
    for (uint32_t i = 0; i < kMarkLaunches; ++i) Launch("of another thread", own_);
    EXPECT_EQ(driver.marks, 0);
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->CaptureBegin(own_, enter), CUDA_SUCCESS);
  EXPECT_EQ(client->StreamWait(own_, enter), CUDA_SUCCESS) << "joins the one that is open";
  Launch("kernel", own_);
  EXPECT_EQ(driver.marks, 1) << "the driver says that it is in none";
}

// Another stream's may have to wait for what this thread does next.
TEST_F(ClientContexts, ACaptureBeginsBesideAMarkOfAnotherStream) {
  AllocAsync(512, own_);
  AllocAsync(512, FakeDriver::Stream(3));
  std::atomic<int> entered{0};
  std::thread capturer;
  driver.on_write = [&] {
    const auto enter = [&] {
      ++entered;
      return CUDA_SUCCESS;
    };
    capturer = std::thread([&, enter] {
      EXPECT_EQ(client->CaptureBegin(FakeDriver::Stream(3), enter), CUDA_SUCCESS);
      EXPECT_EQ(client->StreamWait(FakeDriver::Stream(3), enter), CUDA_SUCCESS);
    });
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (entered < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    EXPECT_EQ(entered, 2);
  };
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("kernel", own_);
  ASSERT_TRUE(capturer.joinable()) << "no mark was queued";
  capturer.join();
}

// The end of the session's context waits for work of its own, and that for what this thread does.
TEST_F(ClientContexts, AStreamJoinsACaptureBesideTheEndOfAContext) {
  static std::atomic<bool> ending;
  static std::atomic<bool> joined;
  static std::atomic<bool> in_time;
  static CUresult (*destroy)(CUcontext);
  ending = joined = in_time = false;
  AllocAsync(512, own_);
  MakeSecond();
  driver.device_of[second_] = 0;
  AllocAsync(512, other_);
  destroy = std::exchange(driver.table().cuCtxDestroy_v2, [](CUcontext context) {
    ending = true;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!joined && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    in_time = joined.load();
    return destroy(context);
  });
  ASSERT_EQ(client->CaptureBegin(other_, Fine), CUDA_SUCCESS);
  std::thread joins([&] {
    while (!ending) std::this_thread::yield();
    EXPECT_EQ(client->StreamWait(other_, Fine), CUDA_SUCCESS);
    joined = true;
  });
  const CUcontext first = std::exchange(driver.context, second_);
  EXPECT_EQ(client->ContextDestroy(first), CUDA_SUCCESS);
  joins.join();
  driver.table().cuCtxDestroy_v2 = destroy;
  EXPECT_TRUE(in_time);
  EXPECT_TRUE(client->has_session()) << "it goes on in the other one";
}

// Whichever is current: a capture belongs to its stream's context, and ends with no other one.
TEST_F(ClientContexts, ACaptureEndsWithTheContextOfItsStream) {
  AllocAsync(512, own_);
  CUcontext third = reinterpret_cast<CUcontext>(0xf4);
  MakeSecond();
  ASSERT_EQ(client->ContextCreate(&third, Fine), CUDA_SUCCESS);
  const CUcontext first = std::exchange(driver.context, third);
  EXPECT_EQ(client->CaptureBegin(other_, Fine), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(third), CUDA_SUCCESS);
  driver.context = first;
  EXPECT_EQ(client->open_captures(), 1u);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 0u);
}

// What cuMemAlloc gave ends with the context that was current; what came from a stream does not.
TEST_F(ClientContexts, WhatAnotherOneAllocatedEndsWithIt) {
  const CUdeviceptr kept = AllocAsync(512, own_);
  MakeSecond();
  const CUcontext first = std::exchange(driver.context, second_);
  CUdeviceptr sync = 0;
  CUdeviceptr async = 0;
  ASSERT_EQ(client->Alloc(&sync, 20 * kUnit), CUDA_SUCCESS);
  ASSERT_EQ(client->AllocAsync(&async, 512, other_), CUDA_SUCCESS);
  driver.context = first;
  CUdeviceptr own = 0;
  ASSERT_EQ(client->Alloc(&own, 512), CUDA_SUCCESS);
  // A context that the driver does not end keeps what it has.
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(daemon->client->live_bytes.load(), 20 * kUnit + 3 * 512);
  driver.destroy_result = CUDA_SUCCESS;
  driver.Enqueue(own_, [] {});
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 3u * 512);
  EXPECT_EQ(client->Free(sync), CUDA_ERROR_INVALID_VALUE);
  // Work of the other one may have been at it: it comes back when that is done.
  driver.Enqueue(own_, [] {});
  CUdeviceptr again = 0;
  EXPECT_EQ(client->Alloc(&again, 30 * kUnit), CUDA_SUCCESS);
  EXPECT_EQ(driver.Pending(own_), 0u);
  for (const CUdeviceptr at : {kept, async}) EXPECT_EQ(client->FreeAsync(at, own_), CUDA_SUCCESS);
  for (const CUdeviceptr at : {own, again}) EXPECT_EQ(client->Free(at), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
}

// Its handle comes again before anybody has heard of the end.
TEST_F(ClientContexts, ANewOneWithTheSameHandleKeepsWhatItAllocated) {
  AllocAsync(512, own_);
  MakeSecond();
  const CUcontext first = std::exchange(driver.context, second_);
  CUdeviceptr old = 0;
  CUdeviceptr next = 0;
  ASSERT_EQ(client->Alloc(&old, kUnit), CUDA_SUCCESS);
  driver.on_destroyed = [&] { ASSERT_EQ(client->Alloc(&next, 2 * kUnit), CUDA_SUCCESS); };
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 2 * kUnit + 512);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 512u);
  // Of one that lives on after all, and was given something meanwhile.
  ASSERT_EQ(client->Alloc(&old, kUnit), CUDA_SUCCESS);
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  driver.on_destroyed = [&] { ASSERT_EQ(client->Alloc(&next, 2 * kUnit), CUDA_SUCCESS); };
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(daemon->client->live_bytes.load(), 3 * kUnit + 512);
  driver.destroy_result = CUDA_SUCCESS;
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 512u);
  driver.context = first;
}

// A driver need not do what is queued when a context ends. Fences that wait for its marks would
// never be reached.
TEST_F(ClientContexts, MarksThatAreDroppedWithTheirContextAreReached) {
  AllocAsync(512, own_);
  MakeSecond();
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("kernel", other_);
  ASSERT_GT(driver.marks, 0);
  driver.destroy_drops = true;
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  uint64_t reached = 0;
  for (const auto& mark : daemon->marks->mark) reached += mark.load();
  EXPECT_EQ(reached, 1u);
}

// Another thread frees while the session's context is gone and its session is not yet: it asks
// nothing of that context, whose handle the driver may have freed.
TEST_F(ClientContexts, AFreeAsksNothingOfASessionsContextThatIsGone) {
  static std::atomic<bool> waits;
  static std::atomic<bool> asked;
  static CUresult (*synchronise)();
  static CUresult (*push)(CUcontext);
  static CUcontext first;
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  MakeSecond();
  driver.device_of[second_] = 1;  // the session cannot go there
  waits = asked = false;
  synchronise = std::exchange(driver.table().cuCtxSynchronize, [] {
    waits = true;
    return synchronise();
  });
  push = std::exchange(driver.table().cuCtxPushCurrent_v2, [](CUcontext context) {
    if (context == first) asked = true;
    return push(context);
  });
  first = std::exchange(driver.context, second_);
  std::thread other;
  driver.on_destroyed = [&] {
    other = std::thread([&] { static_cast<void>(client->Free(at)); });
    while (!waits) std::this_thread::yield();
  };
  EXPECT_EQ(client->ContextDestroy(first), CUDA_SUCCESS);
  other.join();
  EXPECT_FALSE(asked);
  EXPECT_FALSE(client->has_session());
}

// To synchronise a context breaks every capture in it. A capture that begins while one context is
// waited for is not broken in the next one.
TEST_F(ClientContexts, ACaptureThatBeginsDuringAFreeIsNotBroken) {
  static CUresult (*synchronise)();
  static std::atomic<bool> broken;
  static std::function<void()> meanwhile;
  static Client* asked;
  static int calls;
  asked = client.get();
  calls = 0;
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  MakeSecond();
  std::atomic<bool> begun{false};
  std::thread other;
  broken = false;
  synchronise = std::exchange(driver.table().cuCtxSynchronize, [] {
    if (asked->open_captures() > 0) broken = true;
    // First the one that is current, then all that are known.
    if (++calls == 2) meanwhile();
    return synchronise();
  });
  meanwhile = [&] {
    other = std::thread([&] {
      static_cast<void>(client->CaptureBegin(own_, [&] {
        begun = true;
        return CUDA_SUCCESS;
      }));
    });
    while (client->open_captures() == 0) std::this_thread::yield();
    EXPECT_FALSE(begun) << "nobody knows whether the driver has seen to the synchronisation yet";
  };
  EXPECT_EQ(client->Free(at), CUDA_SUCCESS);
  other.join();
  EXPECT_FALSE(broken);
  EXPECT_TRUE(begun);
  EXPECT_EQ(calls, 2);
}

// What waits for the GPU may wait for the thread that captures.
TEST_F(ClientContexts, ACaptureBeginsBesideASynchronisationThatDoesNotEnd) {
  static CUresult (*synchronise)();
  static std::atomic<bool> begun;
  static std::atomic<bool> waits;
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  begun = waits = false;
  synchronise = std::exchange(driver.table().cuCtxSynchronize, [] {
    waits = true;
    while (!begun) std::this_thread::yield();
    return synchronise();
  });
  std::thread other([&] { static_cast<void>(client->Free(at)); });
  while (!waits) std::this_thread::yield();
  EXPECT_EQ(client->CaptureBegin(own_,
                                 [] {
                                   begun = true;
                                   return CUDA_SUCCESS;
                                 }),
            CUDA_SUCCESS);
  other.join();
}

/// The session's own context ends, and another one on the same GPU lives on.
class SessionMoves : public ClientContexts {
 protected:
  void SetUp() override {
    ClientContexts::SetUp();
    first_ = driver.context;
    kept_ = AllocAsync(512, own_);
    ASSERT_EQ(client->Alloc(&gone_, 3 * kUnit), CUDA_SUCCESS);
    MakeSecond();
    driver.context = second_;
    ASSERT_EQ(client->Alloc(&own_to_second_, 2 * kUnit), CUDA_SUCCESS);
    driver.unrelaxed_call = driver.unregistered_mark = false;
  }
  void TearDown() override {
    EXPECT_FALSE(driver.unrelaxed_call) << "a call that breaks captures";
    EXPECT_FALSE(driver.unregistered_mark) << "a GPU would have faulted";
    ClientContexts::TearDown();
  }
  void ExpectMoved() {
    EXPECT_TRUE(client->has_session());
    EXPECT_EQ(driver.registered_in, second_);
    EXPECT_EQ(daemon->WaitCharged(protocol::Family::kContext, 0), 0u) << "it is the session's own";
    EXPECT_EQ(daemon->client->live_bytes.load(), 2 * kUnit + 512);
    EXPECT_EQ(client->Free(gone_), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(client->FreeAsync(kept_, other_), CUDA_SUCCESS) << "belonged to no context";
    EXPECT_EQ(client->Free(own_to_second_), CUDA_SUCCESS);
    const int before = driver.marks;
    for (uint32_t i = 0; i < kMarkLaunches; ++i) Launch("kernel", other_);
    EXPECT_GT(driver.marks, before);
    driver.RunAll();
    driver.immediate = true;
    EXPECT_NE(AllocPool(), 0u) << "what was the ended one's is free";
    EXPECT_EQ(daemon->Count(FrameType::kBye), 0u);
    EXPECT_EQ(daemon->Count(FrameType::kHello), 1u);
  }

  CUcontext first_ = nullptr;
  CUdeviceptr kept_ = 0;
  CUdeviceptr gone_ = 0;
  CUdeviceptr own_to_second_ = 0;
};

TEST_F(SessionMoves, WhatBelongsToOthersStays) {
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  ExpectMoved();
  // That one's end is the session's.
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_FALSE(client->has_session());
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->held_units(), 0u);
}

// A mark that the GPU has not written when its page is nobody's would be a fault.
TEST_F(SessionMoves, BehindTheMarksOfTheOthers) {
  for (uint32_t i = 0; i < kMarkLaunches; ++i) Launch("kernel", other_);
  ASSERT_GT(driver.Pending(other_), 0u);
  std::thread gpu([this] {
    for (int i = 0; i < 500 && driver.registered_in == first_; ++i) std::this_thread::yield();
    driver.Run(other_);
  });
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  gpu.join();
  ExpectMoved();
}

// While it moves others free, and launch what would be marked: that waits for nothing, and no mark
// is queued.
TEST_F(SessionMoves, OthersGoOnMeanwhile) {
  const CUdeviceptr more = AllocAsync(512, other_);
  driver.on_destroyed = [&] {
    std::thread([&] {
      EXPECT_EQ(client->FreeAsync(more, other_), CUDA_SUCCESS);
      for (uint32_t i = 0; i < 2 * kMarkLaunches; ++i) Launch("kernel", other_);
    }).join();
  };
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  ExpectMoved();
}

TEST_F(SessionMoves, NotWhenTheDriverRefusesTheEnd) {
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  EXPECT_EQ(driver.registered_in, first_);
  EXPECT_EQ(daemon->WaitCharged(protocol::Family::kContext, 1), 1u);
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  ExpectMoved();
}

TEST_F(SessionMoves, NotToAnotherGpu) {
  driver.device_of[second_] = 1;
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_FALSE(client->has_session());
  driver.device_of.clear();
}

// The first of two threads that end both: the second one's is the session's end then.
TEST_F(SessionMoves, ToOneThatEndsNext) {
  std::thread other;
  driver.on_destroyed = [&] {
    other = std::thread([&] { EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS); });
  };
  EXPECT_EQ(client->ContextDestroy(first_), CUDA_SUCCESS);
  other.join();
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_FALSE(client->has_session());
  EXPECT_EQ(daemon->held_units(), 0u);
}

// The primary context ends with its last reference.
TEST_F(ClientContexts, TheSessionStaysInAPrimaryContextThatOthersHave) {
  CUcontext primary = nullptr;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client->PrimaryContextRetain(&primary, 0), CUDA_SUCCESS);
  const CUcontext before = std::exchange(driver.context, primary);
  driver.immediate = true;
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  MakeSecond();
  // Nothing of the session may end, so that marks go on.
  static const auto release = driver.table().cuDevicePrimaryCtxRelease_v2;
  static std::function<void()> meanwhile;
  meanwhile = [&] {
    const int before_it = driver.marks;
    for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("kernel", other_);
    EXPECT_GT(driver.marks, before_it);
  };
  driver.table().cuDevicePrimaryCtxRelease_v2 = [](CUdevice device) {
    std::thread([] { meanwhile(); }).join();
    return release(device);
  };
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  driver.table().cuDevicePrimaryCtxRelease_v2 = release;
  EXPECT_EQ(driver.registered_in, primary);
  EXPECT_EQ(daemon->client->live_bytes.load(), 512u);
  driver.context = second_;
  EXPECT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(driver.registered_in, second_);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  EXPECT_FALSE(client->has_session());
  driver.context = before;
}

}  // namespace
}  // namespace sluice::test
