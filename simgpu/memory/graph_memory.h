// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/unique_fd.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/executor_set.h"

namespace sluice::simgpu {

/// What allocation nodes of graphs on one GPU stand for: blocks whose addresses are fixed as long
/// as they exist, while memory comes and goes behind them. Memory that no block needs is kept for
/// the next one of the same size until it is asked back. The caller locks.
class GraphMemory {
 public:
  GraphMemory(const DeviceUse& home, AddressSpace* space, ExecutorSet* executors)
      : gpu_(home.gpu),
        ordinal_(home.ordinal),
        space_(space),
        executors_(executors),
        payer_(home.PayerFor(Family::kGraph)),
        next_serial_((static_cast<uint64_t>(home.ordinal) << 48) + 1) {}

  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t serial = 0;
  };

  /// Whole steps of the GPU's memory.
  uint64_t Rounded(uint64_t bytes) const;
  /// A new block without memory.
  std::optional<uint64_t> Reserve(uint64_t bytes);
  void Remove(uint64_t address);
  /// Puts memory behind a block; false when the GPU is full.
  bool Back(uint64_t address);
  /// Takes it away again and keeps it.
  void Unback(uint64_t address);
  /// Gives back what is kept.
  void DropKept();
  /// The block that `address` lies in.
  std::optional<Block> Find(uint64_t address) const;
  /// Makes all present mappings in the executor of a new context on GPU `ordinal`.
  CUresult Replay(ExecutorLink* link, int ordinal) const;

  uint64_t used() const { return used_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t used_high() const { return used_high_; }
  uint64_t reserved_high() const { return reserved_high_; }
  void ResetUsedHigh() { used_high_ = used_; }
  void ResetReservedHigh() { reserved_high_ = reserved_; }

 private:
  struct Entry {
    uint64_t bytes;
    uint64_t serial;
    UniqueFd memory;
  };
  GpuState* gpu_;
  int ordinal_;
  AddressSpace* space_;
  ExecutorSet* executors_;
  Payer payer_;
  std::map<uint64_t, Entry> blocks_;        // by address
  std::multimap<uint64_t, UniqueFd> kept_;  // by size
  uint64_t next_serial_;                    // none is another GPU's
  uint64_t used_ = 0;
  uint64_t reserved_ = 0;
  uint64_t used_high_ = 0;
  uint64_t reserved_high_ = 0;
};

}  // namespace sluice::simgpu
