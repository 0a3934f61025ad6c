// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// Contexts cost memory outside the pool, and with the last one everything else ends.

namespace sluice::hooks {
namespace {

class ContextHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_EQ(Outside("context"), kContext) << "the session's own";
  }
  void ExpectContexts(uint64_t count) {
    ExpectSoon([this] { return Outside("context"); }, count * kContext);
  }
  /// A job whose session lives in a context of its own; the primary one is gone.
  void MoveToOwnContext() {
    Hook::TearDown();
    ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
    Begin();
    ExpectContexts(1);
    context_ = nullptr;
  }
  CUcontext own_ = nullptr;
};

// The names without a suffix are those of the oldest interfaces; a driver still has them.
TEST_F(ContextHook, cuCtxCreate) {
  ASSERT_CU(cuCtxCreate(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v2) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v3) {
  ASSERT_CU(cuCtxCreate_v3(&own_, nullptr, 0, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v4) {
  ASSERT_CU(cuCtxCreate_v4(&own_, nullptr, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxDestroy) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ASSERT_CU(cuCtxDestroy(own_));
  ExpectContexts(1);
}

TEST_F(ContextHook, cuCtxDestroy_v2) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ASSERT_CU(cuCtxDestroy_v2(own_));
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRetain) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRelease) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxRelease(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRelease_v2) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxReset) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxReset(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxReset_v2) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxReset_v2(0));
  context_ = nullptr;
  ExpectContexts(1);
}

}  // namespace
}  // namespace sluice::hooks
