// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "tests/hooks/hook_fixture.h"

namespace sluice::hooks {

/// Two blocks on the device and some bytes of the host.
class Copy : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    to_ = Alloc(4096);
    from_ = Alloc(4096);
  }
  void ExpectCounted(const std::function<CUresult()>& copy) {
    const uint64_t before = Says("copies");
    for (int i = 0; i < 5; ++i) ASSERT_CU(copy());
    ExpectSoon([this] { return Says("copies"); }, before + 5);
  }
  CUdeviceptr to_ = 0;
  CUdeviceptr from_ = 0;
  uint32_t host_[16] = {};
};

#define COPY_HOOK_TEST_F(fixture, symbol, ...)             \
  TEST_F(fixture, symbol) {                                \
    ExpectCounted([this] { return symbol(__VA_ARGS__); }); \
  }
#define COPY_HOOK_TEST(symbol, ...) COPY_HOOK_TEST_F(Copy, symbol, __VA_ARGS__)

}  // namespace sluice::hooks
