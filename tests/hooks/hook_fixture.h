// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tests/contract/fixture.h"

/// Tests that run inside a job (mutation_test starts them): each is named after a hook, and fails
/// when that hook is not there.
namespace sluice::hooks {

using contract::DeviceMemory;
using contract::SharedWord;

inline constexpr size_t kMiB = 1 << 20;
/// What mutation_test registers the job with.
inline constexpr size_t kLimit = 24 * kMiB;
inline constexpr size_t kMoreThanLimit = 30 * kMiB;
inline constexpr size_t kContext = 1 * kMiB;
inline constexpr size_t kUnit = 2 * kMiB;

class Hook : public contract::ContextTest {
 protected:
  /// What the daemon says of this job.
  nlohmann::json Job();
  uint64_t Says(const std::string& key);
  /// Bytes outside the pool of one family, by the daemon.
  uint64_t Outside(const std::string& family);
  /// What the library says without waiting for an answer reaches the daemon soon. Bounded.
  void ExpectSoon(const std::function<uint64_t()>& value, uint64_t expected);
  /// A session, so that the daemon knows the job.
  void Begin();
  /// What comes now waits for the word. No kernel that does: where the GPU runs one operation at a
  /// time, the daemon could not poison what is given back meanwhile, and would answer nobody.
  void Block(CUstream stream, const SharedWord& word);
};

#define HOOK_TEST(symbol) TEST_F(Hook, symbol)

/// A green context of all SMs.
inline CUgreenCtx NewGreen() {
  CUdevResource sms{};
  EXPECT_CU(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
  CUdevResourceDesc desc = nullptr;
  EXPECT_CU(cuDevResourceGenerateDesc(&desc, &sms, 1));
  CUgreenCtx green = nullptr;
  EXPECT_CU(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

}  // namespace sluice::hooks
