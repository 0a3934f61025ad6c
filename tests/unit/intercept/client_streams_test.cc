// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/intercept/client_fixture.h"

// Streams that are destroyed, and what they leave behind: frees, marks, handles that come again.

namespace sluice::test {
namespace {

class ClientStreams : public ClientTest {
 protected:
  static CUresult Fine() { return CUDA_SUCCESS; }

  /// A stream of a second context frees a block behind a kernel, and is destroyed; then its context
  /// ends, and the driver drops what is queued in it.
  void EndWithWorkQueued() {
    driver.stream_context[theirs_] = second_;
    AllocAsync(512, own_);
    ASSERT_EQ(client->ContextCreate(&second_, Fine), CUDA_SUCCESS);
    const CUdeviceptr a = AllocAsync(kUnit, theirs_);
    driver.Enqueue(theirs_, [] {});
    ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
    ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
    driver.destroy_drops = true;
    ASSERT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
    driver.queues[theirs_].operations.clear();
    driver.destroy_drops = false;
  }

  void TakeSlots(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      AllocAsync(512, FakeDriver::Stream(100 + static_cast<int>(i)));
  }
  /// Behind work, on the own stream; another thread does something between its look-up and the
  /// free.
  void FreeWhile(CUdeviceptr at, std::function<void()> something) {
    static std::function<void()> meanwhile;
    static CUresult (*fill)(CUdeviceptr, unsigned, size_t, CUstream);
    meanwhile = std::move(something);
    fill = std::exchange(driver.table().cuMemsetD32Async,
                         [](CUdeviceptr to, unsigned value, size_t words, CUstream stream) {
                           if (meanwhile) std::thread(std::exchange(meanwhile, nullptr)).join();
                           return fill(to, value, words, stream);
                         });
    driver.Enqueue(own_, [] {});
    ASSERT_EQ(client->FreeAsync(at, own_), CUDA_SUCCESS);
    driver.table().cuMemsetD32Async = fill;
  }

  const CUstream own_ = FakeDriver::Stream(1);
  const CUstream theirs_ = FakeDriver::Stream(9);
  CUcontext second_ = reinterpret_cast<CUcontext>(0xe2);
};

// A mark that is never reached would be waited for in vain.
TEST_F(ClientStreams, ADroppedMarkDoesNotKeepTheSessionFromMoving) {
  auto* third = reinterpret_cast<CUcontext>(0xe3);
  ASSERT_EQ(client->ContextCreate(&third, Fine), CUDA_SUCCESS);
  EndWithWorkQueued();
  const CUcontext first = std::exchange(driver.context, third);
  EXPECT_EQ(client->ContextDestroy(first), CUDA_SUCCESS);
  EXPECT_TRUE(client->has_session());
}

// Another thread drains while this one is inside cuStreamDestroy, which has freed the handle.
TEST_F(ClientStreams, ADestroyedStreamIsNotMarked) {
  const CUdeviceptr big = AllocAsync(30 * kUnit, own_);
  Launch("kernel", theirs_);
  ASSERT_EQ(client->FreeAsync(big, FakeDriver::Stream(3)), CUDA_SUCCESS);
  driver.on_stream_destroyed = [this] {
    driver.immediate = true;
    driver.RunAll();
    const int before = driver.marks_of[theirs_];
    std::thread other([this] { AllocAsync(30 * kUnit, own_); });
    other.join();
    EXPECT_EQ(driver.marks_of[theirs_], before);
  };
  ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
}

// The driver tells no id of a stream that captures.
TEST_F(ClientStreams, ADestroyedStreamThatCapturesIsNotMarked) {
  const CUdeviceptr big = AllocAsync(30 * kUnit, own_);
  Launch("kernel", theirs_);
  driver.immediate = true;
  driver.RunAll();
  driver.capturing.insert(theirs_);
  const int asked = driver.ids_asked;
  ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
  EXPECT_EQ(driver.ids_asked, asked);
  driver.capturing.clear();
  const int before = driver.marks_of[theirs_];
  ASSERT_EQ(client->FreeAsync(big, FakeDriver::Stream(3)), CUDA_SUCCESS);
  AllocAsync(30 * kUnit, own_);
  EXPECT_EQ(driver.marks_of[theirs_], before);
}

TEST_F(ClientStreams, TwoContextsMayHaveStreamsOfOneId) {
  driver.table().cuStreamGetId = [](CUstream stream, unsigned long long* id) {  // NOLINT
    *id = stream == CU_STREAM_LEGACY ? 1 : 7;
    return CUDA_SUCCESS;
  };
  driver.stream_context[theirs_] = second_;
  ASSERT_EQ(client->ContextCreate(&second_, Fine), CUDA_SUCCESS);
  const CUdeviceptr a = AllocAsync(30 * kUnit, own_);
  driver.Enqueue(own_, [] {});
  ASSERT_EQ(client->FreeAsync(a, own_), CUDA_SUCCESS);
  const CUdeviceptr b = AllocAsync(kUnit, theirs_);
  EXPECT_FALSE(b >= a && b < a + 30 * kUnit) << "the other one still uses it";
  driver.RunAll();
}

// The look-up, which asks for the current context, is over, and the slot goes to another stream.
TEST_F(ClientStreams, ASynchronisationSpeaksForNoOtherStream) {
  static std::function<void()> meanwhile;
  static CUresult (*current)(CUcontext*);
  AllocAsync(512, own_);
  AllocAsync(512, CU_STREAM_PER_THREAD);
  std::set<CUdeviceptr> in_use;
  meanwhile = [&] {
    for (uint32_t i = 0; i < protocol::kStreamSlots + 8; ++i) {
      const CUstream stream = FakeDriver::Stream(100 + static_cast<int>(i));
      const CUdeviceptr b = AllocAsync(512, stream);
      driver.Enqueue(stream, [] {});
      ASSERT_EQ(client->FreeAsync(b, stream), CUDA_SUCCESS);
      in_use.insert(b);
    }
  };
  current = std::exchange(driver.table().cuCtxGetCurrent, [](CUcontext* context) {
    if (meanwhile) std::thread(std::exchange(meanwhile, nullptr)).join();
    return current(context);
  });
  ASSERT_EQ(client->StreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  driver.table().cuCtxGetCurrent = current;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(in_use.count(AllocAsync(512, own_)), 0u) << "another one still uses it, at " << i;
  }
  driver.RunAll();
}

// Streams come and go, and the driver takes no mark of them any more.
TEST_F(ClientStreams, ThoseThatEndedWithoutAMarkGiveTheirSlotsBack) {
  static CUresult (*write)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
  AllocAsync(512, own_);
  write = std::exchange(driver.table().cuStreamWriteValue64_v2,
                        [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
                          return stream == FakeDriver::Stream(1) ? write(stream, at, value, flags)
                                                                 : CUDA_ERROR_INVALID_HANDLE;
                        });
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kPressure;
  for (uint32_t i = 0; i < protocol::kStreamSlots + 8; ++i) {
    const CUstream stream = FakeDriver::Stream(100 + static_cast<int>(i));
    for (uint32_t launch = 0; launch < kMarkLaunches; ++launch) Launch("kernel", stream);
    ASSERT_EQ(client->StreamDestroy(stream), CUDA_SUCCESS);
  }
  const size_t before = Records().size();
  Launch("kernel", theirs_);
  EXPECT_EQ(Records().size(), before + 1) << "there is no slot for it";
  driver.table().cuStreamWriteValue64_v2 = write;
}

// Their ids are one, and the other one gets the slot while this one frees.
TEST_F(ClientStreams, AFreeIsNotTheNextOwnersOfTheSlotWhateverItsId) {
  driver.table().cuStreamGetId = [](CUstream stream, unsigned long long* id) {  // NOLINT
    *id = reinterpret_cast<uint64_t>(stream == FakeDriver::Stream(9) ? FakeDriver::Stream(1)
                                                                     : stream);
    return CUDA_SUCCESS;
  };
  Start(FakeDaemon::Options(), {.poison = true});
  const CUdeviceptr a = AllocAsync(16 * kUnit, own_);
  ASSERT_EQ(client->ContextCreate(&second_, Fine), CUDA_SUCCESS);
  driver.stream_context[theirs_] = second_;
  TakeSlots(protocol::kStreamSlots - 2);
  FreeWhile(a, [this] { AllocAsync(512, theirs_); });
  for (int i = 0; i < 64; ++i) {
    const CUdeviceptr b = AllocAsync(512, theirs_);
    ASSERT_FALSE(b >= a && b < a + 16 * kUnit) << i;
  }
  driver.RunAll();
}

// There are many streams, and while this one frees, its slot is given to another one.
TEST_F(ClientStreams, AFreeIsNotTheNextOwnersOfTheSlot) {
  Start(FakeDaemon::Options(), {.poison = true});
  const CUdeviceptr a = AllocAsync(16 * kUnit, own_);
  FreeWhile(a, [this] { TakeSlots(2 * protocol::kStreamSlots); });
  for (uint32_t i = 0; i < 2 * protocol::kStreamSlots; ++i) {
    const CUstream stream = FakeDriver::Stream(100 + static_cast<int>(i));
    const CUdeviceptr b = AllocAsync(512, stream);
    ASSERT_FALSE(b >= a && b < a + 16 * kUnit) << i;
  }
  driver.RunAll();
}

// The driver gives the handle to a new stream before the call that destroyed the old one returns.
TEST_F(ClientStreams, AHandleThatComesAgainAtOnceIsAnotherStream) {
  AllocAsync(512, own_);
  const CUdeviceptr a = AllocAsync(kUnit, theirs_);
  driver.Enqueue(theirs_, [] {});
  ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
  driver.on_stream_destroyed = [this, a] {
    EXPECT_NE(AllocAsync(kUnit, theirs_), a) << "the old stream's kernel still uses it";
  };
  ASSERT_EQ(client->StreamDestroy(theirs_), CUDA_SUCCESS);
  driver.RunAll();
}

TEST_F(ClientStreams, OneThatTheDriverDoesNotDestroyIsAsItWas) {
  const CUdeviceptr a = AllocAsync(kUnit, theirs_);
  driver.Enqueue(theirs_, [] {});
  ASSERT_EQ(client->FreeAsync(a, theirs_), CUDA_SUCCESS);
  driver.stream_destroy_result = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(client->StreamDestroy(theirs_), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(AllocAsync(kUnit, theirs_), a) << "its own stream may have it at once";
  driver.RunAll();
}

// It freed much while nobody waited for a mark, and does nothing any more when somebody does.
TEST_F(ClientStreams, WhatAQuietOneFreedGoesBackUnderPressure) {
  Start({.unit_bytes = 1 << 20, .handles = 4, .units_per_handle = 8});
  driver.immediate = true;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 28; ++i) blocks.push_back(AllocAsync(1 << 20, theirs_));
  Launch("kernel", theirs_);
  for (const CUdeviceptr block : blocks) {
    ASSERT_EQ(client->FreeAsync(block, theirs_), CUDA_SUCCESS);
  }
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 100; ++i) Launch("kernel", own_);
  EXPECT_EQ(daemon->client->held_bytes.load(), 0u);
}

// It goes on freeing, with the GPU a few launches behind, and has no cycle.
TEST_F(ClientStreams, WhatABusyOneFreedBeforeGoesBackUnderPressure) {
  Start({.unit_bytes = 128 << 10, .handles = 4, .units_per_handle = 64});
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 28; ++i) blocks.push_back(AllocAsync(1 << 20, own_));
  Launch("kernel", own_);
  for (const CUdeviceptr block : blocks) ASSERT_EQ(client->FreeAsync(block, own_), CUDA_SUCCESS);
  // A phase without allocations, nobody waits.
  for (int i = 0; i < 4096; ++i) {
    Launch("kernel", own_);
    if (driver.Pending(own_) > 8) driver.Run(own_, driver.Pending(own_) - 8);
  }
  const auto step = [&] {
    const CUdeviceptr temporary = AllocAsync(150 << 10, own_);
    driver.Enqueue(own_, [] {});
    Launch("kernel", own_);
    ASSERT_EQ(client->FreeAsync(temporary, own_), CUDA_SUCCESS);
    // All but the last few operations are done.
    const size_t pending = driver.Pending(own_);
    if (pending > 8) driver.Run(own_, pending - 8);
  };
  for (int i = 0; i < 20000; ++i) step();
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 20000; ++i) step();
  EXPECT_LE(daemon->client->held_bytes.load(), uint64_t{4} << 20);
  driver.RunAll();
}

// Nobody waits, the GPU is done with everything, and the program trims its pool.
TEST_F(ClientStreams, ATrimGivesBackWhatTheGpuIsDoneWith) {
  Start({.unit_bytes = 128 << 10, .handles = 4, .units_per_handle = 64});
  driver.immediate = true;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 28; ++i) blocks.push_back(AllocAsync(1 << 20, own_));
  for (const CUdeviceptr block : blocks) ASSERT_EQ(client->FreeAsync(block, own_), CUDA_SUCCESS);
  for (int i = 0; i < 4096; ++i) Launch("kernel", own_);
  for (int i = 0; i < 10; ++i) {
    const CUdeviceptr temporary = AllocAsync(150 << 10, own_);
    Launch("kernel", own_);
    ASSERT_EQ(client->FreeAsync(temporary, own_), CUDA_SUCCESS);
  }
  auto* pool = reinterpret_cast<CUmemoryPool>(0x9001);
  ASSERT_EQ(client->PoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_LE(daemon->client->held_bytes.load(), uint64_t{4} << 20);
}

}  // namespace
}  // namespace sluice::test
