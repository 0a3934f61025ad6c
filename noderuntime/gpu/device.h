// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
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

enum class CopyDirection : uint8_t { kToHost, kToPool };

/// `bytes` of the pool from `offset` on, and as many of host memory.
struct CopySpan {
  uint64_t offset = 0;
  std::byte* host = nullptr;
  uint64_t bytes = 0;
};

/// Names copies that were started together. Never 0.
using CopyTicket = uint64_t;

/// One GPU as the daemon uses it. For one thread. Offsets and sizes are bytes of the pool. Behind
/// an interface so that sessions and the daemon's wiring can be tested without any driver.
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

  /// Host memory that the GPU copies from and to at full speed: locked, and slow to get (the whole
  /// of it is touched). The caller gives it back with FreeHost. kResourceExhausted: there is none.
  virtual Result<std::byte*> AllocateHost(uint64_t bytes) = 0;
  /// No copy that uses it may be under way.
  virtual void FreeHost(std::byte* host) = 0;

  /// Starts copies between the pool and memory of AllocateHost, and returns at once. Copies of one
  /// direction end in the order in which they were started; between the two directions there is no
  /// order. Needs the daemon's context, like Poison. An error: none of them is under way (it waits
  /// for what had begun), and the targets hold anything. kInvalidArgument: beyond the pool.
  virtual Result<CopyTicket> StartCopies(CopyDirection direction,
                                         const std::vector<CopySpan>& spans) = 0;
  /// Whether they have ended; never waits while the driver works. True, or an error, is said once:
  /// the ticket is gone. After an error, too, the GPU touches neither side any more.
  virtual Result<bool> CopiesEnded(CopyTicket ticket) = 0;
  /// Waits until they have ended, well or not; the ticket is gone.
  virtual Status WaitForCopies(CopyTicket ticket) = 0;

  /// Whether the driver still knows `pid` as a user of this device; true when it does not answer.
  virtual bool IsUsedBy(pid_t pid) = 0;
};

}  // namespace sluice::gpu
