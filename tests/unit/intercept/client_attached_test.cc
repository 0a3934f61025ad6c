// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <utility>

#include "tests/unit/intercept/contexts_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;

/// A second context that is current, and is attached to beside its making.
class ClientAttached : public ClientContexts {
 protected:
  void SetUp() override {
    ClientContexts::SetUp();
    block_ = AllocPool();
    MakeSecond();
    first_ = std::exchange(driver.context, second_);
    Attach();
  }
  void Attach() {
    CUcontext attached = nullptr;
    ASSERT_EQ(client->ContextAttach(&attached, 0), CUDA_SUCCESS);
    ASSERT_EQ(attached, second_);
  }
  CUresult Detach() { return client->ContextDetach(second_); }
  /// Whether a free waits for what the second one does.
  bool IsWaitedFor() {
    const CUcontext current = std::exchange(driver.context, first_);
    driver.Enqueue(other_, [] {});
    EXPECT_EQ(client->Free(block_), CUDA_SUCCESS);
    const bool waited = driver.Pending(other_) == 0;
    driver.RunAll();
    block_ = AllocPool();
    driver.context = current;
    return waited;
  }
  CUcontext first_ = nullptr;
  CUdeviceptr block_ = 0;
};

TEST_F(ClientAttached, OnlyTheLastReferenceIsItsEnd) {
  Attach();
  for (int left = 2; left > 0; --left) {
    ASSERT_EQ(Detach(), CUDA_SUCCESS);
    EXPECT_TRUE(IsWaitedFor()) << left << " references are left";
  }
  ASSERT_EQ(Detach(), CUDA_SUCCESS);
  EXPECT_FALSE(IsWaitedFor());
  driver.context = first_;
}

TEST_F(ClientAttached, AReferenceThatTheDriverKeepsIsStillThere) {
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(Detach(), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  ASSERT_EQ(Detach(), CUDA_SUCCESS);
  EXPECT_TRUE(IsWaitedFor());
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(Detach(), CUDA_ERROR_INVALID_CONTEXT) << "nor is the last one gone";
  driver.destroy_result = CUDA_SUCCESS;
  EXPECT_TRUE(IsWaitedFor());
  driver.context = first_;
}

// cuCtxDestroy asks for no references, and the handle may come again.
TEST_F(ClientAttached, ANewOneHasNoneOfTheReferencesOfTheOldOne) {
  ASSERT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  driver.attached.clear();
  MakeSecond();
  EXPECT_TRUE(IsWaitedFor());
  ASSERT_EQ(Detach(), CUDA_SUCCESS);
  EXPECT_FALSE(IsWaitedFor());
  MakeSecond();
  Attach();
  ASSERT_EQ(Detach(), CUDA_SUCCESS);
  EXPECT_TRUE(IsWaitedFor());
  driver.context = first_;
}

// Nor when the driver refuses the new one's end.
TEST_F(ClientAttached, ARefusedEndDoesNotBringOldReferencesBack) {
  ASSERT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  driver.attached.clear();
  MakeSecond();
  driver.destroy_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(client->ContextDestroy(second_), CUDA_ERROR_INVALID_CONTEXT);
  driver.destroy_result = CUDA_SUCCESS;
  EXPECT_TRUE(IsWaitedFor());
  ASSERT_EQ(Detach(), CUDA_SUCCESS);
  EXPECT_FALSE(IsWaitedFor());
  driver.context = first_;
}

// Where the driver lets a program attach to it. What keeps it is not counted here.
TEST_F(ClientAttached, APrimaryOneEndsWhenTheDriverSaysSo) {
  CUcontext primary = nullptr;
  ASSERT_EQ(client->PrimaryContextRetain(&primary, 0), CUDA_SUCCESS);
  driver.stream_context[other_] = primary;
  driver.context = primary;
  ASSERT_EQ(client->ContextDetach(primary), CUDA_SUCCESS);
  EXPECT_TRUE(IsWaitedFor());
  driver.context = first_;
}

TEST_F(ClientAttached, TheSessionEndsWithTheLastReferenceToItsContext) {
  ASSERT_EQ(client->ContextDestroy(second_), CUDA_SUCCESS);
  driver.context = first_;
  CUcontext attached = nullptr;
  ASSERT_EQ(client->ContextAttach(&attached, 0), CUDA_SUCCESS);
  ASSERT_EQ(client->ContextDetach(attached), CUDA_SUCCESS);
  EXPECT_EQ(daemon->client->held_bytes.load(), kPool);
  ASSERT_EQ(client->ContextDetach(attached), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
}

}  // namespace
}  // namespace sluice::test
