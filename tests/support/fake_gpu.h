// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "noderuntime/gpu/device.h"

namespace sluice::testing {

/// A GPU without a driver: a pool of bytes, a user that the test names, and copies that end when
/// the test says so. Half of a copy is made when it starts and half when it ends, so that whoever
/// touches either side in between is found out by the bytes.
class FakeGpu : public gpu::Device {
 public:
  /// `pool_bytes`: what copies can reach; none where a test makes no copies.
  explicit FakeGpu(uint64_t pool_bytes = 0) : pool(pool_bytes) {}

  const gpu::DeviceInfo& info() const override { return facts; }
  Result<std::vector<UniqueFd>> CreateHandles(uint32_t count, uint64_t bytes) override;
  void AdoptHandles(const std::vector<int>&, uint64_t) override {}
  Status Poison(uint64_t offset, uint64_t bytes) override;
  bool IsUsedBy(pid_t pid) override { return pid == user; }
  Result<std::byte*> AllocateHost(uint64_t bytes) override;
  void FreeHost(std::byte* host) override;
  Result<gpu::CopyTicket> StartCopies(gpu::CopyDirection direction,
                                      const std::vector<gpu::CopySpan>& spans) override;
  Result<bool> CopiesEnded(gpu::CopyTicket ticket) override;
  Status WaitForCopies(gpu::CopyTicket ticket) override;

  /// Ends the oldest copies under way, with this status. An error: their second half is never made.
  void EndOldest(const Status& status = {});
  size_t under_way() const;
  uint64_t host_bytes() const;
  /// What no user of a GPU may do: host memory freed under a copy, copies to what is not there,
  /// tickets that never were.
  int violations() const { return violations_; }

  gpu::DeviceInfo facts;
  pid_t user = -1;
  std::vector<std::pair<uint64_t, uint64_t>> poisoned;  // offset, bytes
  std::vector<std::byte> pool;
  bool holds_copies = false;  // they end by EndOldest or WaitForCopies alone
  uint64_t host_memory = ~uint64_t{0};
  Status next_start;  // an error: what the next StartCopies answers
  int allocations = 0;

 private:
  struct Copies {
    gpu::CopyDirection direction = gpu::CopyDirection::kToHost;
    std::vector<gpu::CopySpan> spans;
    bool ended = false;
    Status status;
  };
  enum class Half : uint8_t { kFirst, kSecond };
  void Move(const Copies& copies, Half half);
  void End(Copies* copies, const Status& status);
  bool Reaches(const gpu::CopySpan& span) const;

  std::map<std::byte*, std::vector<std::byte>> host_;
  std::map<gpu::CopyTicket, Copies> copies_;
  gpu::CopyTicket last_ticket_ = 0;
  int violations_ = 0;
};

}  // namespace sluice::testing
