// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/executor_set.h"

namespace sluice::simgpu {

/// Memory that another process (or another interface) made and this one uses at a pointer: opened
/// IPC handles, pointers of imported pools, buffers of external memory. Seen by every context.
/// Whoever made it pays for it. The caller locks.
class ForeignMemory {
 public:
  enum class Kind { kIpcHandle, kPoolPointer, kExternalBuffer };

  ForeignMemory(const DeviceUses* devices, AddressSpace* space, ExecutorSet* executors)
      : devices_(devices), space_(space), executors_(executors) {}

  /// Bytes [offset, offset + bytes) of a memory file of one of the GPUs.
  CUresult Open(uint64_t* out, Kind kind, UniqueFd file, uint64_t offset, uint64_t bytes);
  /// Once more an IPC handle that is open, whose maker may be gone; false: it is not.
  bool OpenAgain(uint64_t* out, uint64_t inode, uint64_t offset);
  /// `address` as Open gave it. Who opened the same IPC handle twice closes it twice.
  CUresult Close(uint64_t address, Kind kind);

  struct Range {
    Kind kind;
    uint64_t address;
    uint64_t bytes;
    uint64_t serial;
    int home;  // ordinal of the GPU that it lies on
  };
  std::optional<Range> Find(uint64_t address) const;

  /// Makes all of it visible in the executor of a new context.
  CUresult Replay(ExecutorLink* link) const;

 private:
  struct Mapping {
    Kind kind;
    DeviceUse home;
    uint64_t skip;   // from the start of the first page to the first byte
    uint64_t bytes;  // of the program's
    uint64_t offset;
    uint64_t inode;
    unsigned opened = 1;
    uint64_t serial = 0;
    UniqueFd file;
    uint64_t file_offset() const { return offset - skip; }
  };
  using Mappings = std::map<uint64_t, Mapping>;  // by the address of the first page

  static uint64_t Length(const Mapping& mapping);
  static ControlRequest MapRequest(const Mappings::value_type& mapping);
  static ControlRequest AllowRequest(const Mappings::value_type& mapping);
  static Payer PayerOf(const Mapping& mapping);

  const DeviceUses* devices_;
  AddressSpace* space_;
  ExecutorSet* executors_;
  uint64_t next_serial_ = 1;
  Mappings mappings_;
};

}  // namespace sluice::simgpu
