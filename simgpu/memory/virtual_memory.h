// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/executor_set.h"

namespace sluice::simgpu {

/// The virtual memory management calls of one process, with the header's rules: memory lives as
/// long as a handle, a mapping or an exported descriptor refers to it, in whatever process. The
/// caller locks.
class VirtualMemory {
 public:
  VirtualMemory(const DeviceUses* devices, AddressSpace* space, ExecutorSet* executors)
      : devices_(devices), space_(space), executors_(executors) {}

  CUresult Create(CUmemGenericAllocationHandle* out, uint64_t bytes,
                  const CUmemAllocationProp& prop);
  CUresult Release(CUmemGenericAllocationHandle handle);
  CUresult Retain(CUmemGenericAllocationHandle* out, uint64_t address);
  CUresult Map(uint64_t address, uint64_t bytes, uint64_t offset,
               CUmemGenericAllocationHandle handle);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  /// For one GPU, which exists.
  CUresult SetAccess(uint64_t address, uint64_t bytes, int ordinal, unsigned flags);
  CUresult GetAccess(unsigned long long* flags, uint64_t address, int ordinal) const;
  /// False: it lies in a mapping to which no GPU has access.
  bool Accessible(uint64_t address) const;
  CUresult Export(int* fd, CUmemGenericAllocationHandle handle) const;
  CUresult Import(CUmemGenericAllocationHandle* out, int fd);
  CUresult Properties(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) const;
  CUresult FreeAddress(uint64_t address, uint64_t bytes);

  /// The mapping that contains `address`.
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t serial = 0;  // of the memory behind it
    int home = 0;         // ordinal of the GPU that it lies on
    // The addresses that the program reserved, in which it is mapped.
    uint64_t reserved_at = 0;
    uint64_t reserved_bytes = 0;
  };
  std::optional<Range> Find(uint64_t address) const;

  /// Makes all present mappings in the executor of a new context on GPU `ordinal`.
  CUresult Replay(ExecutorLink* link, int ordinal) const;

 private:
  struct Physical;
  struct Mapping {
    uint64_t bytes;
    DeviceAccess access;
    std::shared_ptr<Physical> memory;
  };
  using Mappings = std::map<uint64_t, Mapping>;

  bool Aligned(uint64_t value) const {
    return value % devices_->front().gpu->machine().granularity == 0;
  }
  CUmemGenericAllocationHandle Publish(std::shared_ptr<Physical> memory);
  std::shared_ptr<Physical> Get(CUmemGenericAllocationHandle handle) const;
  /// Whether mappings cover [address, address + bytes) exactly.
  bool Covered(uint64_t address, uint64_t bytes) const;

  const DeviceUses* devices_;
  AddressSpace* space_;
  ExecutorSet* executors_;
  uint64_t next_handle_ = 0x1000;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> handles_;
  Mappings mappings_;
};

}  // namespace sluice::simgpu
