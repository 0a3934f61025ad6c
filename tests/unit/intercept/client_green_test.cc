// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

constexpr size_t kPool = 32 * kUnit;

/// A green context beside the primary one, in which the session is.
class ClientGreen : public ClientTest {
 protected:
  void SetUp() override {
    ClientTest::SetUp();
    driver.context = FakeDriver::Primary();
    driver.primary_active[0] = true;
    driver.stream_context[own_] = FakeDriver::Primary();
    driver.stream_context[theirs_] = FakeDriver::GreenView();
  }
  void Make() { ASSERT_EQ(client->GreenCreate(&green_, nullptr, 0, 1), CUDA_SUCCESS); }
  /// The whole pool, freed on the green context's stream behind work that is not done.
  void FreeThere() {
    const CUdeviceptr a = AllocAsync(kPool, theirs_);
    driver.Enqueue(theirs_, [] {});
    ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
  }

  const CUstream own_ = FakeDriver::Stream(1);
  const CUstream theirs_ = FakeDriver::Stream(9);
  CUgreenCtx green_ = nullptr;
};

// Its end does not wait for what is queued, so what was freed there is marked before.
TEST_F(ClientGreen, WhatWasFreedOnItsStreamsIsMarkedBeforeItEnds) {
  AllocAsync(512, own_);
  Make();
  const CUdeviceptr a = AllocAsync(30 * kUnit, theirs_);
  driver.Enqueue(theirs_, [] {});
  ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
  const int before = driver.marks;
  ASSERT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
  EXPECT_EQ(driver.marks, before + 1);
  EXPECT_GT(driver.Pending(theirs_), 0u) << "nobody has waited";
  driver.Run(theirs_);
  const int waited = driver.synchronised;
  AllocAsync(30 * kUnit, own_);
  EXPECT_EQ(driver.synchronised, waited) << "the mark says that it is done";
}

// Nor does the driver promise to do it: then the primary context's synchronisation speaks for it.
TEST_F(ClientGreen, MarksThatAreDroppedWithItAreReached) {
  Make();
  FreeThere();
  driver.destroy_drops = true;
  ASSERT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
  CUdeviceptr a = 0;
  ASSERT_EQ(client->AllocAsync(&a, kPool, own_), CUDA_SUCCESS);
  uint64_t reached = 0;
  for (const auto& mark : daemon->marks->mark) reached += mark.load();
  EXPECT_EQ(reached, 1u);
  ASSERT_EQ(client->FreeAsync(a, own_), CUDA_SUCCESS);
  driver.immediate = true;
  driver.RunAll();
  const int waited = driver.synchronised;
  ASSERT_EQ(client->AllocAsync(&a, kPool, own_), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, waited) << "once";
}

/// A green context has ended with a mark queued, and when the primary context has been synchronised
/// for it, its stream's slot has another one.
class ClientGreenSlot : public ClientGreen {
 protected:
  void SetUp() override {
    ClientGreen::SetUp();
    Make();
    const CUdeviceptr a = AllocAsync(24 * kUnit, theirs_);
    driver.Enqueue(theirs_, [] {});
    ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
    ASSERT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
    AllocAsync(4 * kUnit, own_);
    driver.stream_context[next_] = FakeDriver::Primary();
  }
  /// The next one frees something, and then something else happens.
  void DrainWhile(std::function<void()> something) {
    static CUresult (*synchronise)();
    static std::function<void()> meanwhile;
    meanwhile = [this, something = std::move(something)] {
      while (slot_ < protocol::kStreamSlots && daemon->marks->mark[slot_].load() == 0) ++slot_;
      ASSERT_LT(slot_, protocol::kStreamSlots);
      AllocAsync(kUnit, own_);
      ASSERT_EQ(client->FreeAsync(AllocAsync(kUnit, next_), next_), CUDA_SUCCESS);
      something();
    };
    synchronise = std::exchange(driver.table().cuCtxSynchronize, [] {
      const CUresult result = synchronise();
      if (meanwhile) std::exchange(meanwhile, nullptr)();
      return result;
    });
    CUdeviceptr a = 0;
    static_cast<void>(client->AllocAsync(&a, 24 * kUnit, own_));
    driver.table().cuCtxSynchronize = synchronise;
    EXPECT_FALSE(meanwhile);
  }
  uint64_t Mark() { return daemon->marks->mark[slot_].load(); }

  const CUstream next_ = FakeDriver::Stream(11);
  uint32_t slot_ = 0;
};

TEST_F(ClientGreenSlot, ItsMarksAreItsOwn) {
  DrainWhile([this] {
    const int before = driver.marks;
    for (uint32_t i = 0; i < kMarkLaunches; ++i) Launch("k", next_);
    ASSERT_EQ(driver.marks, before + 1);
  });
  ASSERT_GT(driver.Pending(next_), 0u);
  EXPECT_EQ(Mark(), 1u);
  driver.Run(next_);
  EXPECT_EQ(Mark(), 2u) << "it was that slot";
}

// The GPU has written it, and the thread that queued it has not come back from the driver.
TEST_F(ClientGreenSlot, AMarkThatIsJustQueuedDoesNotRunBack) {
  static CUresult (*write)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
  static std::atomic<bool> written;
  static std::atomic<bool> go_on;
  written = go_on = false;
  write = std::exchange(driver.table().cuStreamWriteValue64_v2,
                        [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
                          const CUresult result = write(stream, at, value, flags);
                          if (stream != FakeDriver::Stream(11) || written) return result;
                          FakeDriver::Get().Run(stream);
                          written = true;
                          while (!go_on) std::this_thread::yield();
                          return result;
                        });
  std::thread other;
  DrainWhile([&] {
    other = std::thread([this] {
      for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches && !written; ++i) Launch("k", next_);
    });
    while (!written) std::this_thread::yield();
    EXPECT_EQ(Mark(), 2u);
  });
  EXPECT_EQ(Mark(), 2u);
  go_on = true;
  other.join();
  driver.table().cuStreamWriteValue64_v2 = write;
  driver.RunAll();
}

TEST_F(ClientGreen, GoesOnWhenTheDriverKeepsIt) {
  Make();
  FreeThere();
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->GreenDestroy(green_), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  driver.immediate = true;
  driver.RunAll();
  const int before = driver.marks;
  FreeThere();
  CUdeviceptr a = 0;
  ASSERT_EQ(client->AllocAsync(&a, kPool, own_), CUDA_SUCCESS);
  EXPECT_GT(driver.marks, before) << "its stream is marked as before";
  EXPECT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
}

// Work that nobody sees may be on its streams: only the primary context can speak for both.
TEST_F(ClientGreen, AFreeWaitsForItsStreams) {
  Make();
  CUdeviceptr a = 0;
  ASSERT_EQ(client->Alloc(&a, kPool), CUDA_SUCCESS);
  driver.Enqueue(theirs_, [] {});
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(driver.Pending(theirs_), 0u);
  driver.Enqueue(own_, [] {});
  ASSERT_EQ(client->Alloc(&a, kPool), CUDA_SUCCESS);
  const CUcontext primary = std::exchange(driver.context, FakeDriver::GreenView());
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS) << "in the green one";
  EXPECT_EQ(driver.Pending(own_), 0u);
  driver.context = primary;
  EXPECT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
}

TEST_F(ClientGreen, ASessionThatBeginsInItIsThePrimaryOnes) {
  Make();
  driver.context = FakeDriver::GreenView();
  CUdeviceptr a = 0;
  ASSERT_EQ(client->Alloc(&a, kPool), CUDA_SUCCESS);
  driver.context = FakeDriver::Primary();
  EXPECT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), kPool) << "the block lives on";
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
}

/// Several of them, each with a stream, beside much else that the program holds.
class ClientGreens : public ClientGreen {
 protected:
  static constexpr int kGreens = 4;
  static CUgreenCtx Green(int n) { return reinterpret_cast<CUgreenCtx>(0x6000 + 0x10 * n); }
  static CUcontext View(int n) { return reinterpret_cast<CUcontext>(0x7000 + 0x10 * n); }
  static CUstream StreamIn(int n) { return FakeDriver::Stream(20 + n); }
  void SetUp() override {
    ClientGreen::SetUp();
    AllocAsync(512, own_);
    daemon->WaitReady();
    daemon->daemon->flags = protocol::kWantTimes;
    static int made = 0;
    made = 0;
    driver.table().cuGreenCtxCreate = [](CUgreenCtx* out, CUdevResourceDesc, CUdevice, unsigned) {
      ++FakeDriver::Get().primary_references;
      *out = Green(made++);
      return CUDA_SUCCESS;
    };
    driver.table().cuCtxFromGreenCtx = [](CUcontext* out, CUgreenCtx green) {
      int n = 0;
      while (Green(n) != green) ++n;
      *out = View(n);
      return CUDA_SUCCESS;
    };
    for (int n = 0; n < kGreens; ++n) {
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t key = 0x1000 * (i + 1) + static_cast<uint64_t>(n);
        const auto made_it = [] { return CUDA_SUCCESS; };
        client->AllocCounted(protocol::Family::kHostPinned, Thing::kHost, &key, 4096, made_it);
      }
      Make();
      ASSERT_EQ(green_, Green(n));
      driver.stream_context[StreamIn(n)] = View(n);
    }
  }
  /// With events of the session's context, which the driver takes in those that are part of it.
  bool IsTimed(CUstream stream) {
    const size_t before = driver.Pending(stream);
    Launch("kernel", stream);
    const bool timed = driver.Pending(stream) == before + 3;
    driver.RunAll();
    return timed;
  }
};

TEST_F(ClientGreens, EachIsAPartOfThePrimaryContextUntilItEnds) {
  for (int n = 0; n < kGreens; ++n) EXPECT_TRUE(IsTimed(StreamIn(n))) << n;
  ASSERT_EQ(client->GreenDestroy(Green(1)), CUDA_SUCCESS);
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->GreenDestroy(Green(2)), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  for (const int n : {0, 2, 3}) EXPECT_TRUE(IsTimed(StreamIn(n))) << n;
  // The handle by which it was current may come again, for a context of its own.
  const CUstream others = FakeDriver::Stream(19);
  driver.stream_context[others] = View(1);
  EXPECT_FALSE(IsTimed(others));
  for (const int n : {0, 2, 3}) ASSERT_EQ(client->GreenDestroy(Green(n)), CUDA_SUCCESS);
}

// Its handle may come again for a new one, of which it is not.
TEST_F(ClientGreen, ANewOneDoesNotSpeakForTheStreamsOfTheOldOne) {
  Make();
  const CUdeviceptr a = AllocAsync(kPool, theirs_);
  driver.Enqueue(theirs_, [] {});
  ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
  ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
  ASSERT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
  Make();
  driver.stream_context[theirs_] = reinterpret_cast<CUcontext>(0xdead);
  driver.context = FakeDriver::GreenView();
  ASSERT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  driver.context = FakeDriver::Primary();
  ASSERT_GT(driver.Pending(theirs_), 0u);
  const int before = driver.synchronised;
  AllocAsync(kPool / 2, own_);
  EXPECT_GT(driver.synchronised, before) << "nobody has waited for its work yet";
  driver.RunAll();
}

TEST_F(ClientGreen, AStreamThatIsDestroyedAfterItKeepsNobodyWaiting) {
  Make();
  AllocAsync(512, theirs_);
  AllocAsync(512, own_);
  ASSERT_EQ(client->GreenDestroy(green_), CUDA_SUCCESS);
  static const auto push = driver.table().cuCtxPushCurrent_v2;
  driver.table().cuCtxPushCurrent_v2 = [](CUcontext next) {
    return next == FakeDriver::GreenView() ? CUDA_ERROR_INVALID_CONTEXT : push(next);
  };
  ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
  driver.immediate = true;
  for (int i = 0; i < 4; ++i) {
    CUdeviceptr a = 0;
    ASSERT_EQ(client->Alloc(&a, 20 * kUnit), CUDA_SUCCESS);
    ASSERT_EQ(client->Free(a), CUDA_SUCCESS);
  }
}

// Another thread retains the primary context at the moment at which its last reference goes.
TEST_F(ClientGreen, APrimaryContextThatComesAgainAtOnceIsAnotherOne) {
  CUcontext primary = nullptr;
  driver.primary_active[0] = false;
  ASSERT_EQ(client->PrimaryContextRetain(&primary, 0), CUDA_SUCCESS);
  AllocAsync(512, own_);
  static const auto release = driver.table().cuDevicePrimaryCtxRelease_v2;
  static std::thread other;
  static Client* c = nullptr;
  c = client.get();
  driver.table().cuDevicePrimaryCtxRelease_v2 = [](CUdevice device) {
    const CUresult result = release(device);
    if (FakeDriver::Get().primary_references == 0 && !other.joinable()) {
      other = std::thread([device] {
        CUcontext again = nullptr;
        EXPECT_EQ(c->PrimaryContextRetain(&again, device), CUDA_SUCCESS);
      });
      // It is either kept out, or done by then.
      for (int i = 0; i < 10'000 && FakeDriver::Get().primary_references == 0; ++i) {
        std::this_thread::yield();
      }
    }
    return result;
  };
  ASSERT_EQ(client->PrimaryContextRelease(0), CUDA_SUCCESS);
  other.join();
  AllocAsync(512, own_);
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("kernel", own_);
  EXPECT_FALSE(driver.unregistered_mark);
  driver.RunAll();
}

}  // namespace
}  // namespace sluice::test
