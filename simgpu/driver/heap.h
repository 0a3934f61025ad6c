// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <limits>
#include <memory>
#include <optional>

#include "common/cuda/abi.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/block_pool.h"
#include "simgpu/sharing/gpu_state.h"
#include "simgpu/streams/executor_link.h"

namespace sluice::simgpu {

/// A BlockPool over real simulated memory: a window of one sparse file, mapped at a device address
/// by the executor, backed and dropped piece by piece. Behind cuMemAlloc, arrays and the memory
/// pools.
class Heap : private BlockPool::Backing {
 public:
  /// Where the bytes lie: in `file` from `offset` on, at most `limit` of them.
  struct Window {
    UniqueFd file;
    uint64_t offset = 0;
    uint64_t limit = std::numeric_limits<uint64_t>::max();
  };
  /// Bytes of addresses (and of file) that a heap of this GPU takes.
  static uint64_t WindowBytes(const GpuState& gpu);

  /// In a file of its own, or in `window`.
  static std::unique_ptr<Heap> Create(GpuState* gpu, Payer payer, AddressSpace* space,
                                      ExecutorLink* link, const BlockPool::Order* order,
                                      std::optional<Window> window = std::nullopt);
  ~Heap() override;

  /// As BlockPool, with device addresses.
  std::optional<uint64_t> Alloc(uint64_t bytes, uint32_t stream);
  bool Free(uint64_t address, const StreamMark& mark);
  std::optional<BlockPool::Block> Find(uint64_t address) const;
  void Trim(uint64_t keep) { pool_.Trim(keep); }

  BlockPool& pool() { return pool_; }
  const BlockPool& pool() const { return pool_; }
  uint64_t base() const { return base_; }
  uint64_t window() const { return bytes_; }
  bool Contains(uint64_t address) const { return address >= base_ && address - base_ < bytes_; }
  int file() const { return window_.file.get(); }
  uint64_t FileOffset(uint64_t address) const { return window_.offset + (address - base_); }

 private:
  Heap(GpuState* gpu, Payer payer, AddressSpace* space, ExecutorLink* link, Window window,
       bool shared_file, uint64_t base, uint64_t bytes, const BlockPool::Order* order)
      : gpu_(gpu),
        payer_(payer),
        space_(space),
        link_(link),
        window_(std::move(window)),
        shared_file_(shared_file),
        base_(base),
        bytes_(bytes),
        pool_(bytes, gpu->machine().granularity, this, order) {}
  bool Grow(uint64_t offset, uint64_t bytes) override;
  void Shrink(uint64_t offset, uint64_t bytes) override;
  bool Protect(uint64_t offset, uint64_t bytes, unsigned access);
  void CountRequested(uint64_t before);

  GpuState* gpu_;
  Payer payer_;
  AddressSpace* space_;
  ExecutorLink* link_;
  Window window_;
  bool shared_file_;  // which outlives this heap
  uint64_t base_;
  uint64_t bytes_;
  BlockPool pool_;
};

}  // namespace sluice::simgpu
