// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "common/cuda/abi.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/range_set.h"
#include "simgpu/streams/executor_link.h"

namespace sluice::simgpu {

/// Which executor sees which heap: its own, those of contexts that it is a peer of, those of pools
/// that its GPU has access to. Copies may reach more: every heap of cuMemAlloc, in a mapping of
/// their own that kernels do not know (a shadow), made when the first copy needs it.
/// Thread-safe. Its lock comes after those of the driver and of the contexts.
class HeapViews {
 public:
  /// A heap: where it is in the address space and in which file.
  struct Place {
    uint64_t base = 0;
    uint64_t bytes = 0;
    int file = -1;  // stays open until Withdraw
    uint64_t offset = 0;
    int home = 0;  // ordinal of the GPU that it lies on
  };

  /// The executor of a context on GPU `ordinal`, until Remove.
  CUresult Add(ExecutorLink* link, int ordinal);
  void Remove(const ExecutorLink* link);

  /// A new heap of the context of `owner`. `access`: of a pool, by GPU; nothing: the owner and its
  /// peers see it.
  CUresult Publish(const Place& place, ExecutorLink* owner,
                   const std::optional<DeviceAccess>& access);
  void Withdraw(uint64_t base);
  /// Bytes of it are backed from now on, or not any more: then nobody sees them when this returns.
  CUresult Back(uint64_t base, uint64_t offset, uint64_t bytes);
  void Unback(uint64_t base, uint64_t offset, uint64_t bytes);
  /// A pool's heap: what GPU `ordinal` may do.
  CUresult SetAccess(uint64_t base, int ordinal, uint8_t access);

  /// Peers, in one direction: `viewer` sees all heaps of cuMemAlloc of `owner`, present and future.
  CUresult EnablePeer(ExecutorLink* viewer, ExecutorLink* owner);
  CUresult DisablePeer(ExecutorLink* viewer, ExecutorLink* owner);

  /// Lets copies of `viewer` reach the heap at `address`, if it is one of cuMemAlloc and another
  /// context's.
  void AllowCopies(const ExecutorLink* viewer, uint64_t address);
  /// The executors whose operations may use the heaps of cuMemAlloc of `owner`.
  std::set<const ExecutorLink*> UsersOf(const ExecutorLink* owner);

 private:
  struct Heap {
    Place place;
    const ExecutorLink* owner;
    std::optional<DeviceAccess> pool_access;
    RangeSet backed;  // offsets
  };
  struct View {
    bool mapped = false;
    uint8_t access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    bool shadow = false;
  };
  struct Viewer {
    ExecutorLink* link;
    int ordinal;
    std::set<const ExecutorLink*> peers;
    std::set<const ExecutorLink*> copies;  // whose heaps have shadows here
    std::map<uint64_t, View> views;        // by base
  };

  Viewer* Find(const ExecutorLink* link);
  static uint8_t WantedAccess(const Viewer& viewer, const Heap& heap);
  /// Makes what the viewer sees of the heap what it should see.
  static CUresult Update(Viewer* viewer, const Heap& heap);
  CUresult UpdateAll(Viewer* viewer, const ExecutorLink* owner);

  std::mutex mutex_;
  std::list<Viewer> viewers_;
  std::map<uint64_t, Heap> heaps_;  // by base
};

}  // namespace sluice::simgpu
