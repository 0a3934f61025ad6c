// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

/// A program that works on a second GPU as well, of which Sluice knows nothing. It may end its
/// context on the first one, and the session with it, at any moment.
class ClientSecondGpu : public ClientTest {
 protected:
  static CUresult Fine() { return CUDA_SUCCESS; }

  void SetUp() override {
    ClientTest::SetUp();
    AllocAsync(512);
    daemon->WaitReady();
    driver.stream_context[theirs_] = second_;
    driver.device_of[second_] = 1;
    ASSERT_EQ(client->ContextCreate(&second_, Fine), CUDA_SUCCESS);
  }

  void EndTheSession() {
    std::thread([&] { EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS); }).join();
    EXPECT_FALSE(client->has_session());
  }

  const CUstream theirs_ = FakeDriver::Stream(9);
  CUcontext second_ = reinterpret_cast<CUcontext>(0xe2);
};

// Nobody would wait for them when their page ends with the session's context.
TEST_F(ClientSecondGpu, ItsStreamsWriteNoMarks) {
  daemon->daemon->flags = protocol::kPressure;
  for (uint32_t i = 0; i < 4 * kMarkLaunches; ++i) Launch("kernel", theirs_);
  EXPECT_EQ(driver.marks, 0);
  const int asked = driver.ids_asked;
  Launch("kernel", theirs_);
  EXPECT_EQ(driver.ids_asked, asked) << "once is enough";
  EndTheSession();
}

TEST_F(ClientSecondGpu, WhatIsFreedOnItsStreamsIsWaitedFor) {
  const CUdeviceptr copied = AllocAsync(30 * kUnit);
  driver.Enqueue(theirs_, [] {});  // a copy between the two
  ASSERT_EQ(client->FreeAsync(copied, theirs_), CUDA_SUCCESS);
  const int before = driver.synchronised;
  const CUdeviceptr again = AllocAsync(30 * kUnit);
  EXPECT_EQ(again, copied);
  EXPECT_EQ(driver.Pending(theirs_), 0u) << "the GPU was done with it";
  EXPECT_GT(driver.synchronised, before);
}

TEST_F(ClientSecondGpu, ALaunchOutlivesTheSession) {
  const auto issue = [&] {
    EndTheSession();
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->Launch(FakeDriver::Function("kernel"), theirs_, issue), CUDA_SUCCESS);
}

TEST_F(ClientSecondGpu, SoDoesALaunchOnAStreamThatTheSessionKnew) {
  const auto issue = [&] {
    EndTheSession();
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->Launch(FakeDriver::Function("kernel"), FakeDriver::Stream(1), issue),
            CUDA_SUCCESS);
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, kUnit, FakeDriver::Stream(1)), CUDA_SUCCESS)
      << "in the next session, whose pages are where the others were";
}

TEST_F(ClientSecondGpu, ASynchronisationOutlivesTheSession) {
  static std::function<void()> meanwhile;
  static CUresult (*synchronise)(CUstream);
  Launch("kernel", theirs_);
  meanwhile = [&] { EndTheSession(); };
  synchronise = std::exchange(driver.table().cuStreamSynchronize, [](CUstream stream) {
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    return synchronise(stream);
  });
  EXPECT_EQ(client->StreamSynchronize(theirs_), CUDA_SUCCESS);
  EXPECT_FALSE(meanwhile);
}

}  // namespace
}  // namespace sluice::test
