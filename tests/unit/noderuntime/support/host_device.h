// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "noderuntime/gpu/device.h"

namespace sluice::testing {

/// A pool of plain memory, and copies that end when the test says so. What else a test wants of its
/// device it overrides.
class HostDevice : public gpu::Device {
 public:
  explicit HostDevice(uint64_t pool_bytes = 0) : pool(pool_bytes) {}

  const gpu::DeviceInfo& info() const override { return info_; }
  Result<std::vector<UniqueFd>> CreateHandles(uint32_t, uint64_t) override {
    return std::vector<UniqueFd>();
  }
  void AdoptHandles(const std::vector<int>&, uint64_t) override {}
  Status Poison(uint64_t, uint64_t) override { return {}; }
  bool IsUsedBy(pid_t) override { return false; }

  Result<std::byte*> AllocateHost(uint64_t bytes) override {
    if (host_left < bytes) {
      return Status(StatusCode::kResourceExhausted, "the host has no memory left");
    }
    host_left -= bytes;
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::byte* const at = memory.get();
    host_.emplace(at, std::pair(std::move(memory), bytes));
    return at;
  }
  void FreeHost(std::byte* memory) override {
    host_left += host_.at(memory).second;
    host_.erase(memory);
  }
  Result<gpu::CopyTicket> BeginCopies(gpu::Direction direction,
                                      const std::vector<gpu::Piece>& pieces) override {
    if (!refusal.ok()) return refusal;
    copies_[++last_] = {direction, pieces};
    if (immediate) Run(last_);
    return last_;
  }
  Result<bool> CopiesEnded(gpu::CopyTicket ticket) override {
    if (!copies_.contains(ticket)) return true;
    if (!copies_.at(ticket).done) return false;
    copies_.erase(ticket);
    if (!failure.ok()) return failure;
    return true;
  }
  Status AwaitCopies(gpu::CopyTicket ticket) override {
    if (copies_.contains(ticket)) Run(ticket);
    copies_.erase(ticket);
    return failure;
  }

  /// Every copy under way comes to its end.
  void RunCopies() {
    for (auto& [ticket, copy] : copies_) Run(ticket);
  }
  size_t host_blocks() const { return host_.size(); }

  std::vector<std::byte> pool;
  uint64_t host_left = ~uint64_t{0};
  bool immediate = false;
  Status refusal;  // of a copy that is begun
  Status failure;  // of one that has ended

 protected:
  gpu::DeviceInfo info_;

 private:
  struct Copy {
    gpu::Direction direction;
    std::vector<gpu::Piece> pieces;
    bool done = false;
  };
  void Run(gpu::CopyTicket ticket) {
    Copy& copy = copies_.at(ticket);
    if (copy.done) return;
    copy.done = true;
    if (!failure.ok()) return;
    for (const gpu::Piece& piece : copy.pieces) {
      std::byte* const at = pool.data() + piece.offset;
      copy.direction == gpu::Direction::kToHost ? std::memcpy(piece.host, at, piece.bytes)
                                                : std::memcpy(at, piece.host, piece.bytes);
    }
  }

  std::map<std::byte*, std::pair<std::unique_ptr<std::byte[]>, uint64_t>> host_;
  std::map<gpu::CopyTicket, Copy> copies_;
  gpu::CopyTicket last_ = 0;
};

}  // namespace sluice::testing
