// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/memory/executor_set.h"

namespace sluice::simgpu {

/// Pinned host memory of a process: allocated or registered, always backed by a file that the
/// executors map too. Its device address is its host address. The caller locks.
class HostMemory {
 public:
  explicit HostMemory(ExecutorSet* executors) : executors_(executors) {}

  /// `owner`: the executor of the context in which it is made, and with which it goes.
  CUresult Allocate(void** out, uint64_t bytes, const ExecutorLink* owner);
  CUresult Free(void* pointer);
  /// Shared mappings are registered through their own file. Private memory is *replaced* in place
  /// by a shared mapping with the same contents, page by page around the range: no other thread may
  /// write to these pages during the call, and after fork() parent and child share them.
  CUresult Register(void* pointer, uint64_t bytes, const ExecutorLink* owner);
  CUresult Unregister(void* pointer);
  /// The context is gone: what was allocated in it is freed, what was registered is the program's
  /// own memory again.
  void DropAllOf(const ExecutorLink* owner);

  /// Whether [address, address + bytes) is pinned as a whole.
  bool Pinned(uint64_t address, uint64_t bytes) const;
  CUresult Replay(ExecutorLink* link) const;

 private:
  struct Range {
    uint64_t user;   // the pointer that the program gave or got
    uint64_t bytes;  // from the page-aligned start
    uint64_t offset;
    bool writable;
    bool allocated;
    const ExecutorLink* owner;  // compared, never followed
    UniqueFd fd;
  };
  using Ranges = std::map<uint64_t, Range>;  // by page-aligned start
  CUresult Publish(uint64_t start, Range range);
  Ranges::iterator FindUser(void* pointer, bool allocated);
  CUresult Unpublish(const Ranges::value_type& range);

  ExecutorSet* executors_;
  Ranges ranges_;
};

}  // namespace sluice::simgpu
