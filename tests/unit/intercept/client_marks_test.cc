// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

/// A mark that asks the driver about its stream first (somebody captures, somewhere else), and what
/// other threads do before the driver has answered.
class ClientMarks : public ClientTest {
 protected:
  static CUresult Fine() { return CUDA_SUCCESS; }

  void SetUp() override {
    ClientTest::SetUp();
    AllocAsync(512, own_);
    daemon->WaitReady();
    const CUstream captured = FakeDriver::Stream(90);
    ASSERT_EQ(client->CaptureBegin(captured, Fine), CUDA_SUCCESS);
    driver.capturing.insert(captured);
  }

  /// `meanwhile` runs on a thread of its own while the driver is asked about `stream` next.
  void WhenAsked(CUstream stream, std::function<void()> meanwhile) {
    static CUstream about;
    static std::function<void()> action;
    static CUresult (*ask)(CUstream, CUstreamCaptureStatus*);
    about = stream;
    action = std::move(meanwhile);
    asked_ = [] { return action == nullptr; };
    ask = driver.table().cuStreamIsCapturing;
    driver.table().cuStreamIsCapturing = [](CUstream which, CUstreamCaptureStatus* status) {
      if (which == about && action) std::thread(std::exchange(action, nullptr)).join();
      return ask(which, status);
    };
  }

  /// Something is allocated, used by work that is still to be done, and freed there.
  void UseAndFree(CUstream stream) {
    const CUdeviceptr at = AllocAsync(512, stream);
    driver.Enqueue(stream, [] {});
    EXPECT_EQ(client->FreeAsync(at, stream), CUDA_SUCCESS);
    in_use_.insert(at);
  }

  /// All that this stream can get.
  void ExpectNothingThatIsInUse() {
    for (int i = 0; i < 20'000; ++i) {
      CUdeviceptr at = 0;
      if (client->AllocAsync(&at, 512, own_) != CUDA_SUCCESS) return;
      ASSERT_EQ(in_use_.count(at), 0u) << "another stream still uses it";
    }
  }

  const CUstream own_ = FakeDriver::Stream(1);
  std::set<CUdeviceptr> in_use_;
  bool (*asked_)() = nullptr;
};

TEST_F(ClientMarks, ASlotThatIsAboutToBeMarkedGoesToNobodyElse) {
  daemon->daemon->flags = protocol::kPressure;
  for (uint32_t i = 0; i < kMarkLaunches - 1; ++i) Launch("kernel", own_);
  // The launch that a mark is due for.
  const auto issue = [&] {
    driver.Enqueue(own_, [] {});
    WhenAsked(own_, [&] {
      for (uint32_t i = 0; i < protocol::kStreamSlots + 8; ++i) {
        UseAndFree(FakeDriver::Stream(100 + static_cast<int>(i)));
      }
    });
    return CUDA_SUCCESS;
  };
  ASSERT_EQ(client->Launch(FakeDriver::Function("kernel"), own_, issue), CUDA_SUCCESS);
  EXPECT_TRUE(asked_());
  driver.Run(own_);  // the GPU is done with this stream alone
  ExpectNothingThatIsInUse();
  driver.RunAll();
}

TEST_F(ClientMarks, NorDoesThatOfAStreamThatIsDestroyedMeanwhile) {
  const CUstream theirs = FakeDriver::Stream(9);
  const CUdeviceptr most = AllocAsync(29 * kUnit, own_);
  ASSERT_EQ(client->FreeAsync(most, FakeDriver::Stream(3)), CUDA_SUCCESS);
  Launch("kernel", theirs);  // so that whoever waits for all marks this stream, too
  std::thread destroyer;
  WhenAsked(theirs, [&] {
    Launch("kernel", own_);
    const int before = driver.ids_asked;
    destroyer = std::thread([&] { EXPECT_EQ(client->StreamDestroy(theirs), CUDA_SUCCESS); });
    // What is known of streams is void once one is about to be destroyed.
    while (driver.ids_asked == before) Launch("kernel", own_);
    UseAndFree(FakeDriver::Stream(50));
  });
  std::atomic<bool> over{false};
  std::thread gpu([&] {  // is done with all streams but those
    while (!over) {
      for (const int stream : {1, 3, 9}) driver.Run(FakeDriver::Stream(stream));
      std::this_thread::yield();
    }
  });
  CUdeviceptr at = 0;
  static_cast<void>(client->AllocAsync(&at, 30 * kUnit, own_));  // waits for all that is freed
  EXPECT_TRUE(asked_());
  ExpectNothingThatIsInUse();
  over = true;
  gpu.join();
  destroyer.join();
  driver.RunAll();
}

/// Looks at a context, and acts on what it saw when the session has moved there.
class ClientMoves : public ClientTest {};

TEST_F(ClientMoves, AContextThatTheSessionMovesToIsNotKeptBesideIt) {
  static std::function<void()> meanwhile;
  static CUresult (*device_of)(CUdevice*);
  const auto fine = [] { return CUDA_SUCCESS; };
  CUcontext second = reinterpret_cast<CUcontext>(0xe2);
  const CUstream theirs = FakeDriver::Stream(9);
  driver.immediate = true;
  AllocAsync(512);
  driver.stream_context[theirs] = second;
  ASSERT_EQ(client->ContextCreate(&second, fine), CUDA_SUCCESS);
  const CUcontext first = driver.context;
  device_of = std::exchange(driver.table().cuCtxGetDevice, [](CUdevice* device) {
    const CUresult result = device_of(device);
    if (meanwhile) std::thread(std::exchange(meanwhile, nullptr)).join();
    return result;
  });
  meanwhile = [&] { EXPECT_EQ(client->ContextDestroy(first), CUDA_SUCCESS); };
  Launch("kernel", theirs);
  ASSERT_TRUE(client->has_session()) << "in the second context";
  driver.context = second;
  const int before = driver.synchronised;
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  ASSERT_EQ(client->Free(at), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, before + 1) << "once, for there is one";
}

}  // namespace
}  // namespace sluice::test
