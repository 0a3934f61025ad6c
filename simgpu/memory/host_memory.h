// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/executor_set.h"

namespace sluice::simgpu {

/// Memory at host addresses that the GPU reaches too: pinned (allocated or registered) and managed,
/// always backed by a file that the executors map. Its device address is its host address. Managed
/// memory lies in the GPU's memory for as long as it lives. The caller locks.
class HostMemory {
 public:
  enum class Kind { kAllocated, kRegistered, kManaged };
  struct Info {
    Kind kind;
    uint64_t address;
    uint64_t bytes;
    uint64_t serial;
    unsigned flags;             // as the program gave them
    const ExecutorLink* owner;  // compared, never followed
  };

  explicit HostMemory(ExecutorSet* executors) : executors_(executors) {}

  /// `owner`: the executor of the context in which it is made, and with which it goes.
  CUresult Allocate(void** out, uint64_t bytes, unsigned flags, const ExecutorLink* owner);
  CUresult Free(void* pointer);
  CUresult AllocateManaged(void** out, const DeviceUse& home, uint64_t bytes, unsigned flags,
                           const ExecutorLink* owner);
  CUresult FreeManaged(void* pointer);
  /// Shared mappings are registered through their own file. Private memory is *replaced* in place
  /// by a shared mapping with the same contents, page by page around the range: no other thread may
  /// write to these pages during the call, and after fork() parent and child share them.
  CUresult Register(void* pointer, uint64_t bytes, unsigned flags, const ExecutorLink* owner);
  CUresult Unregister(void* pointer);
  /// The context is gone: what was allocated in it is freed, what was registered is the program's
  /// own memory again.
  void DropAllOf(const ExecutorLink* owner);

  /// Whether [address, address + bytes) is pinned as a whole.
  bool Pinned(uint64_t address, uint64_t bytes) const;
  std::optional<Info> Find(uint64_t address) const;
  CUresult Replay(ExecutorLink* link) const;

 private:
  struct Range {
    Kind kind;
    uint64_t user;        // the pointer that the program gave or got
    uint64_t user_bytes;  // and how much it asked for
    unsigned flags;
    const ExecutorLink* owner;
    uint64_t bytes;  // from the page-aligned start
    uint64_t offset = 0;
    bool writable = true;
    uint64_t serial = 0;
    UniqueFd fd{};
    DeviceUse home{};  // managed: where it lies
  };
  CUresult PublishNew(void** out, UniqueFd file, Range range);
  using Ranges = std::map<uint64_t, Range>;  // by page-aligned start
  CUresult Publish(uint64_t start, Range range);
  Ranges::iterator FindUser(void* pointer, Kind kind);
  CUresult Unpublish(const Ranges::value_type& range);

  ExecutorSet* executors_;
  uint64_t next_serial_ = 1;
  Ranges ranges_;
};

}  // namespace sluice::simgpu
