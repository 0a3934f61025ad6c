// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::gpu {

struct DeviceInfo {
  std::string name;
  std::array<uint8_t, 16> uuid = {};
  uint64_t total_bytes = 0;
  uint64_t granularity = 0;  // a handle's size is a multiple of this
};

/// The pattern of poisoned bytes: a quiet NaN that no computation makes by itself.
inline constexpr uint32_t kPoison = 0x7fc0beef;

/// One GPU as the daemon uses it. Behind an interface so that sessions and the daemon's wiring can
/// be tested without any driver.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Physical memory, exported: one descriptor per handle. All or nothing.
  virtual Result<std::vector<UniqueFd>> CreateHandles(uint32_t count, uint64_t bytes) = 0;

  /// The pool's handles when another process has created them, in pool order.
  virtual void AdoptHandles(const std::vector<int>& handles, uint64_t bytes) = 0;

  /// Overwrites bytes of the pool; returns when the GPU has done it. Needs a context of the
  /// daemon's own, which is made at the first call.
  virtual Status Poison(uint64_t offset, uint64_t bytes) = 0;

  /// Whether the driver still knows `pid` as a user of this device; true when it does not answer.
  virtual bool IsUsedBy(pid_t pid) = 0;
};

}  // namespace sluice::gpu
