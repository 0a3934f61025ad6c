// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {

inline constexpr size_t kPool = 32 * kUnit;

/// Several contexts of one process on one GPU, each with streams of its own. What is allocated in
/// one may be in use in another.
class ClientContexts : public ClientTest {
 protected:
  static CUresult Fine() { return CUDA_SUCCESS; }

  void MakeSecond() {
    ASSERT_EQ(client->ContextCreate(&second_, Fine), CUDA_SUCCESS);
    driver.stream_context[other_] = second_;
  }
  /// Frees a block of the whole pool while a capture is open: on no known stream.
  void FreeBesideACapture(CUdeviceptr at) {
    EXPECT_EQ(client->CaptureBegin(own_,
                                   [this] {
                                     driver.capturing.insert(own_);
                                     return CUDA_SUCCESS;
                                   }),
              CUDA_SUCCESS);
    EXPECT_EQ(client->Free(at), CUDA_SUCCESS);
    EXPECT_EQ(client->CaptureEnd(own_,
                                 [this] {
                                   driver.capturing.erase(own_);
                                   return CUDA_SUCCESS;
                                 }),
              CUDA_SUCCESS);
    ASSERT_EQ(client->open_captures(), 0u);
  }
  CUdeviceptr AllocPool() {
    CUdeviceptr at = 0;
    EXPECT_EQ(client->Alloc(&at, kPool), CUDA_SUCCESS);
    return at;
  }
  /// Whether the pool can be had without waiting for anything of the GPU.
  bool HaveAtOnce() {
    const int before = driver.synchronised;
    CUdeviceptr at = 0;
    const bool had = client->AllocAsync(&at, kPool, own_) == CUDA_SUCCESS;
    return had && driver.synchronised == before;
  }

  const CUstream own_ = FakeDriver::Stream(1);
  const CUstream other_ = FakeDriver::Stream(9);
  CUcontext second_ = reinterpret_cast<CUcontext>(0xe2);
};

}  // namespace sluice::test
