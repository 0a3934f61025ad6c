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

/// Bytes of the pool and the host memory that they are copied to or from.
struct Piece {
  uint64_t offset = 0;  // in the pool
  std::byte* host = nullptr;
  uint64_t bytes = 0;
};
enum class Direction : uint8_t { kToHost, kToPool };
/// Copies that were begun together; never the same number again.
using CopyTicket = uint64_t;

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

  /// Host memory that the GPU copies to by itself. As above it needs the daemon's own context.
  virtual Result<std::byte*> AllocateHost(uint64_t bytes) = 0;
  /// No copy of it may be under way.
  virtual void FreeHost(std::byte* memory) = 0;
  /// Begins to copy, and returns at once. After an error nothing of it is under way.
  virtual Result<CopyTicket> BeginCopies(Direction direction, const std::vector<Piece>& pieces) = 0;
  /// True: all of them have ended, and the ticket with them. An error: they failed, and so on.
  virtual Result<bool> CopiesEnded(CopyTicket ticket) = 0;
  /// Waits for them; the ticket ends.
  virtual Status AwaitCopies(CopyTicket ticket) = 0;

  /// Whether the driver still knows `pid` as a user of this device; true when it does not answer.
  virtual bool IsUsedBy(pid_t pid) = 0;
};

}  // namespace sluice::gpu
