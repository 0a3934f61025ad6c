// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/paged_array.h"

namespace sluice {

/// What a program can have outside the arena, by what names it.
enum class Thing : uint8_t {
  kArray = 1,  // CUarray or CUmipmappedArray
  kPointer,    // a device address that the driver gave: managed, driver pool (`link`; `mapped` is 1
               // when that was destroyed), IPC
  kPhysical,   // CUmemGenericAllocationHandle; `link` is the memory, `refs` how often it was given
               // out
  kMapping,    // a mapped range, by its start; `link` is the memory. `refs` 0: not mapped any more,
               // because the pool has the memory back
  kMemory,     // physical memory, by a number of ours: it outlives its handles, which come again.
               // `link`: of how many units of the pool it is made; 0: the driver's
  kPiece,      // one of these units, by PieceKey; `link` is its address in the arena
  kHost,       // pinned or registered host memory
  kPool,       // CUmemoryPool; `link` is a PoolKind, `bytes` what is used of it, `high` the most,
               // `mapped` the device it is on
  kGraphExec,  // an instantiated graph; `link` is what launches of it are recorded as
  kExternal,   // CUexternalMemory
  kContext,    // a context beside the session's
  kTile,       // that physical memory (`link`) is behind a part of a sparse array (`high`, its
               // handle), by a number of ours
  kGreen,      // CUgreenCtx; `link` is its CUcontext, `high` the primary one of which it is a part,
               // `mapped` the device
  kGreenView,  // the CUcontext of a green context; `link` is the primary one of which it is a part
  kAttached,   // a context, `refs` times attached to beside its making; `context` is that one, too
  kRetained,   // a primary context, `refs` times retained beside its making, the same way
};

inline uint64_t KeyOf(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
inline uint64_t KeyOf(unsigned long long handle) { return handle; }  // NOLINT(google-runtime-int)

/// The handle of physical memory that is made of the pool's units. The driver's are addresses or
/// small numbers.
inline constexpr uint64_t kLeasedHandle = uint64_t{0x51} << 56;
inline bool IsLeasedHandle(uint64_t handle) { return handle >> 56 == 0x51; }

inline uint64_t PieceKey(uint64_t memory, uint32_t piece) { return memory << 24 | piece; }

/// Who serves a memory pool's allocations.
enum PoolKind : uint64_t {
  kArenaPool,   // the arena: an ordinary pool of this device
  kDriverPool,  // the driver: exportable, limited in size, managed, ...
};

struct Holding {
  uint64_t key;     // the handle or address
  uint64_t bytes;   // what was charged or counted for it
  uint64_t high;    // the most that `bytes` ever was, where somebody asks
  uint64_t link;    // another thing's key, by kind
  uint32_t family;  // protocol::Family; 0: neither charged nor counted
  uint32_t refs;    // handles that the program has of it
  uint32_t mapped;  // kMemory: ranges it is mapped in; its `refs` are its handles
  Thing thing;
  uint64_t context = 0;  // with whose end the driver takes it back; 0: with none's
};

/// A context that ends goes by its handle and this bit: handles are addresses, and come again.
inline constexpr uint64_t kEnding = uint64_t{1} << 63;

/// Pools and physical memory outlive every context; so do a pool's blocks, which have a `link`.
inline bool EndsWithContext(const Holding& holding) {
  return holding.thing == Thing::kArray || holding.thing == Thing::kGraphExec ||
         holding.thing == Thing::kExternal || holding.thing == Thing::kTile ||
         holding.thing == Thing::kHost || (holding.thing == Thing::kPointer && holding.link == 0);
}

/// Everything that the program holds outside the arena: what to give back when it lets go of a
/// handle that says nothing of its size. Not thread-safe: the caller holds a lock. Open addressing,
/// at most half full, no tombstones.
class Holdings {
 public:
  constexpr Holdings() = default;

  /// False when the host is out of memory: then nothing was added. A thing that is there already is
  /// replaced: its handle was given up behind our back.
  bool Insert(const Holding& holding);
  /// Valid until the next Insert or Take; null when unknown.
  Holding* Find(Thing thing, uint64_t key);
  /// Removes it. False: unknown.
  bool Take(Thing thing, uint64_t key, Holding* out);
  /// The mapping that contains this address, or null. Looks at all: for rare calls.
  Holding* FindMapping(uint64_t address);

  /// f(holding) for all; f may change what is no key.
  template <class F>
  void ForEach(F f) {
    for (uint32_t i = 0; i < capacity_; ++i) {
      if (slots_[i].thing != Thing{}) f(slots_[i]);
    }
  }
  uint32_t size() const { return size_; }
  void FreeMemory();

 private:
  uint32_t Home(Thing thing, uint64_t key) const {
    const uint64_t mixed =
        (key ^ (uint64_t{static_cast<uint8_t>(thing)} << 56)) * 0x9e3779b97f4a7c15u;
    return static_cast<uint32_t>(mixed >> 40) & (capacity_ - 1);
  }
  bool Grow();
  void Place(const Holding& holding);

  PagedArray<Holding> slots_;
  uint32_t capacity_ = 0;
  uint32_t size_ = 0;
};

}  // namespace sluice
