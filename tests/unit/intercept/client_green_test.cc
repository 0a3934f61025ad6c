// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
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

}  // namespace
}  // namespace sluice::test
