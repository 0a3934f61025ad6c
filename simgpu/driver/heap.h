// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <optional>

#include "common/cuda/abi.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/block_pool.h"
#include "simgpu/sharing/gpu_state.h"
#include "simgpu/streams/executor_link.h"

namespace sluice::simgpu {

/// A BlockPool over real simulated memory: one sparse file, mapped as one window at a device
/// address by the executor, backed and dropped piece by piece. Behind cuMemAlloc and behind the
/// memory pool.
class Heap : private BlockPool::Backing {
 public:
  static std::unique_ptr<Heap> Create(GpuState* gpu, uint32_t process, AddressSpace* space,
                                      ExecutorLink* link, const BlockPool::Order* order);

  BlockPool& pool() { return pool_; }
  uint64_t base() const { return base_; }
  bool Contains(uint64_t address) const { return address >= base_ && address - base_ < window_; }

 private:
  Heap(GpuState* gpu, uint32_t process, ExecutorLink* link, UniqueFd file, uint64_t base,
       uint64_t window, const BlockPool::Order* order)
      : gpu_(gpu),
        process_(process),
        link_(link),
        file_(std::move(file)),
        base_(base),
        window_(window),
        pool_(window, gpu->machine().granularity, this, order) {}
  bool Grow(uint64_t offset, uint64_t bytes) override;
  void Shrink(uint64_t offset, uint64_t bytes) override;
  bool Protect(uint64_t offset, uint64_t bytes, unsigned access);

  GpuState* gpu_;
  uint32_t process_;
  ExecutorLink* link_;
  UniqueFd file_;
  uint64_t base_;
  uint64_t window_;
  BlockPool pool_;

 public:
  ~Heap() override { gpu_->Uncharge(pool_.reserved(), process_); }
  uint64_t window() const { return window_; }
};

}  // namespace sluice::simgpu
