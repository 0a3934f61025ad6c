// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <limits>
#include <memory>
#include <optional>

#include "simgpu/driver/heap_views.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/block_pool.h"

namespace sluice::simgpu {

/// A BlockPool over real simulated memory: a window of one sparse file, mapped at a device address
/// by the executor, backed and dropped piece by piece. Behind cuMemAlloc, arrays and the memory
/// pools.
class Heap : private BlockPool::Backing {
 public:
  /// Where the bytes lie: in `file` (not valid: one of its own) from `offset` on, at most `limit`
  /// of them, and which GPUs have access if it is a pool's.
  struct Window {
    UniqueFd file;
    uint64_t offset = 0;
    uint64_t limit = std::numeric_limits<uint64_t>::max();
    bool shared = false;  // the file outlives this heap
    std::optional<DeviceAccess> access;
  };
  /// Bytes of addresses (and of file) that a heap of this GPU takes.
  static uint64_t WindowBytes(const GpuState& gpu);

  /// On the GPU `home`, for the context of `owner`.
  static std::unique_ptr<Heap> Create(const DeviceUse& home, Family family, AddressSpace* space,
                                      HeapViews* views, ExecutorLink* owner,
                                      const BlockPool::Order* order, Window window);
  ~Heap() override;

  /// As BlockPool, with device addresses.
  std::optional<uint64_t> Alloc(uint64_t bytes, uint32_t stream);
  bool Free(uint64_t address, const StreamMark& mark);
  std::optional<BlockPool::Block> Find(uint64_t address) const;
  void Trim(uint64_t keep) { pool_.Trim(keep); }
  /// A pool's: what GPU `ordinal` may do.
  CUresult SetAccess(int ordinal, uint8_t access) {
    return views_->SetAccess(base_, ordinal, access);
  }

  BlockPool& pool() { return pool_; }
  const BlockPool& pool() const { return pool_; }
  uint64_t base() const { return base_; }
  uint64_t window() const { return bytes_; }
  bool Contains(uint64_t address) const { return address >= base_ && address - base_ < bytes_; }
  int file() const { return window_.file.get(); }
  uint64_t FileOffset(uint64_t address) const { return window_.offset + (address - base_); }

 private:
  Heap(const DeviceUse& home, Family family, AddressSpace* space, HeapViews* views, Window window,
       uint64_t base, uint64_t bytes, const BlockPool::Order* order)
      : gpu_(home.gpu),
        payer_(home.PayerFor(family)),
        space_(space),
        views_(views),
        window_(std::move(window)),
        base_(base),
        bytes_(bytes),
        pool_(bytes, home.gpu->machine().granularity, this, order) {}
  bool Grow(uint64_t offset, uint64_t bytes) override;
  void Shrink(uint64_t offset, uint64_t bytes) override;
  void CountRequested(uint64_t before);

  GpuState* gpu_;
  Payer payer_;
  AddressSpace* space_;
  HeapViews* views_;
  Window window_;
  uint64_t base_;
  uint64_t bytes_;
  BlockPool pool_;
};

}  // namespace sluice::simgpu
