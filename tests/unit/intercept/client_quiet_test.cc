// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A client that is asked to stand still while it waits for memory.
#include <atomic>
#include <future>
#include <thread>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;
using protocol::QuietReason;

class ClientQuiet : public ClientTest {
 protected:
  void SetUp() override {
    ClientTest::SetUp();
    driver.immediate = true;
  }
  /// The next request is met with Quiesce, and stays without an answer.
  void QuiesceNext() {
    daemon->on_request = [this](const protocol::Header& request) {
      seq_ = request.seq;
      daemon->Quiesce(request.seq);
    };
  }
  /// A thread that asks for more than it has.
  std::future<CUresult> AskForMore() {
    return std::async(std::launch::async, [this] {
      CUdeviceptr at = 0;
      return client->AllocAsync(&at, 4 * kUnit, FakeDriver::Stream(1));
    });
  }
  QuietReason Said(size_t count = 1) {
    const auto frames = daemon->Wait(FrameType::kQuiet, count);
    if (frames.size() < count) return static_cast<QuietReason>(99);
    const auto& quiet = *reinterpret_cast<const protocol::Quiet*>(frames.back().data());
    EXPECT_EQ(quiet.header.seq, seq_);
    return static_cast<QuietReason>(quiet.reason);
  }
  /// A thread that copies; true once the driver was called.
  std::future<CUresult> Copy(std::atomic<bool>* called) {
    return std::async(std::launch::async, [this, called] {
      return client->Copy(64, FakeDriver::Stream(2), [called] {
        *called = true;
        return CUDA_SUCCESS;
      });
    });
  }

  std::atomic<uint32_t> seq_{0};
};

TEST_F(ClientQuiet, StandsStillUntilItHasItsAnswer) {
  AllocAsync(1);
  Launch("k");
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  std::atomic<bool> copied{false};
  auto copy = Copy(&copied);
  std::atomic<bool> launched{false};
  auto launch = std::async(std::launch::async, [&] {
    return client->Launch(FakeDriver::Function("k"), FakeDriver::Stream(1), [&] {
      launched = true;
      return CUDA_SUCCESS;
    });
  });
  EXPECT_EQ(copy.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_FALSE(copied);
  EXPECT_FALSE(launched);
  daemon->Grant(seq_, {{8, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
  EXPECT_EQ(copy.get(), CUDA_SUCCESS);
  EXPECT_EQ(launch.get(), CUDA_SUCCESS);
}

TEST_F(ClientQuiet, WaitsForItsOwnGpu) {
  AllocAsync(1);
  driver.immediate = false;
  Launch("k");
  QuiesceNext();
  auto more = AskForMore();
  // Its mark is queued behind the launch.
  while (driver.Pending(FakeDriver::Stream(1)) < 2) std::this_thread::yield();
  EXPECT_EQ(daemon->Count(FrameType::kQuiet), 0u);
  driver.immediate = true;
  driver.RunAll();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  daemon->Grant(seq_, {{8, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
}

// A host function, say: no hook saw it, and it may wait for a thread that is held.
TEST_F(ClientQuiet, WaitsForWhatNoHookHasSeenByAMark) {
  AllocAsync(1);
  Launch("k");
  QuiesceNext();
  auto first = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  daemon->Deny(seq_, protocol::DenyCode::kExhausted, "no");
  EXPECT_EQ(first.get(), CUDA_ERROR_OUT_OF_MEMORY);
  driver.immediate = false;
  driver.Enqueue(FakeDriver::Stream(1), [] {});
  auto more = AskForMore();
  for (int i = 0; i < 10'000'000 && driver.Pending(FakeDriver::Stream(1)) < 2; ++i) {
    std::this_thread::yield();
  }
  EXPECT_EQ(driver.Pending(FakeDriver::Stream(1)), 2u) << "no mark is queued behind it";
  EXPECT_EQ(daemon->Count(FrameType::kQuiet), 1u);
  driver.immediate = true;
  driver.RunAll();
  EXPECT_EQ(Said(2), QuietReason::kQuiet);
  daemon->Grant(seq_, {{8, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
}

TEST_F(ClientQuiet, GoesOnWhenItIsDenied) {
  AllocAsync(1);
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  daemon->Deny(seq_, protocol::DenyCode::kExhausted, "no");
  EXPECT_EQ(more.get(), CUDA_ERROR_OUT_OF_MEMORY);
  std::atomic<bool> copied{false};
  EXPECT_EQ(Copy(&copied).get(), CUDA_SUCCESS);
  EXPECT_TRUE(copied);
}

TEST_F(ClientQuiet, IsNotQuietBesideACallThatDoesNotReturn) {
  AllocAsync(1);
  std::promise<void> inside;
  std::promise<void> leave;
  auto copy = std::async(std::launch::async, [&] {
    return client->Copy(64, FakeDriver::Stream(2), [&] {
      inside.set_value();
      leave.get_future().wait();
      return CUDA_SUCCESS;
    });
  });
  inside.get_future().wait();
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kBusy);
  std::atomic<bool> copied{false};
  EXPECT_EQ(Copy(&copied).get(), CUDA_SUCCESS) << "the others go on";
  leave.set_value();
  EXPECT_EQ(copy.get(), CUDA_SUCCESS);
  daemon->Deny(seq_, protocol::DenyCode::kExhausted, "no");
  EXPECT_EQ(more.get(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(ClientQuiet, IsNotQuietWhileTheLibraryWritesToWhatIsFreed) {
  Start(FakeDaemon::Options(), {.poison = true});
  AllocAsync(1);
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kDebugging);
  daemon->Deny(seq_, protocol::DenyCode::kExhausted, "no");
  EXPECT_EQ(more.get(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(ClientQuiet, IsNotQuietInTheMiddleOfACapture) {
  AllocAsync(1);
  ASSERT_EQ(client->CaptureBegin(FakeDriver::Stream(3),
                                 [this] {
                                   driver.capturing.insert(FakeDriver::Stream(3));
                                   return CUDA_SUCCESS;
                                 }),
            CUDA_SUCCESS);
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kCapturing);
  daemon->Deny(seq_, protocol::DenyCode::kExhausted, "no");
  EXPECT_EQ(more.get(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(ClientQuiet, GivesNothingBackMeanwhile) {
  const CUdeviceptr block = AllocAsync(4 * kUnit);
  AllocAsync(1);
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  const size_t releases = daemon->Count(FrameType::kRelease);
  ASSERT_EQ(client->FreeAsync(block, FakeDriver::Stream(1)), CUDA_SUCCESS) << "frees never wait";
  static_cast<void>(client->PoolTrimTo(nullptr, 0));
  EXPECT_EQ(daemon->Count(FrameType::kRelease), releases);
  daemon->Grant(seq_, {{16, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
}

TEST_F(ClientQuiet, WithoutItsDaemonItsMemoryIsLost) {
  AllocAsync(1);
  QuiesceNext();
  auto more = AskForMore();
  EXPECT_EQ(Said(), QuietReason::kQuiet);
  std::atomic<bool> copied{false};
  auto copy = Copy(&copied);
  daemon->Close("the daemon ends");
  EXPECT_EQ(more.get(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(copy.get(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(copied) << "it would read what is somebody else's";
  EXPECT_EQ(
      client->Launch(FakeDriver::Function("k"), FakeDriver::Stream(1), [] { return CUDA_SUCCESS; }),
      CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace sluice::test
