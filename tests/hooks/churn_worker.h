// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/hooks/hook_fixture.h"

namespace sluice::hooks {

/// What a block takes of the arena.
inline uint64_t Granules(uint64_t bytes) { return (bytes + 511) / 512 * 512; }

/// Bytes by what the daemon calls them.
struct Tally {
  uint64_t live = 0;  // in the arena, in whole granules: blocks and leased physical memory
  uint64_t array = 0;
  uint64_t physical = 0;
  uint64_t managed = 0;
  uint64_t imported = 0;
  uint64_t host_pinned = 0;
  uint64_t host_registered = 0;
  uint64_t contexts = 0;  // beside the first one; not bytes

  Tally& operator+=(const Tally& other) { return Add(other, 1); }
  Tally& operator-=(const Tally& other) { return Add(other, ~uint64_t{0}); }

 private:
  /// Modulo 2^64, where all ones are -1.
  Tally& Add(const Tally& other, uint64_t sign) {
    live += sign * other.live;
    array += sign * other.array;
    physical += sign * other.physical;
    managed += sign * other.managed;
    imported += sign * other.imported;
    host_pinned += sign * other.host_pinned;
    host_registered += sign * other.host_registered;
    contexts += sign * other.contexts;
    return *this;
  }
};

/// Where jobs send each other memory: a datagram socket for each in one folder. Nobody waits: what
/// the other does not take is not sent.
class Exchange {
 public:
  /// `own` and `peer` are paths; an empty one: there is nobody.
  Exchange(const std::string& own, std::string peer);
  ~Exchange();
  /// Until the other one has its socket, so that both run side by side: one that was let in first
  /// may be done before the daemon lets the second in. Bounded.
  void AwaitPeer() const;
  /// The descriptor stays the caller's.
  bool Send(int fd) const;
  /// -1: nothing came.
  int Receive() const;

 private:
  int socket_ = -1;
  std::string own_;
  std::string peer_;
};

/// What one thread has, and does next. Everything it holds is its own. A call that the job's limit
/// has no room for is counted as refused; any other failure fails the test.
class Worker {
 public:
  struct Shared {
    CUcontext context = nullptr;
    CUfunction fill = nullptr;
    CUmemoryPool pools[2] = {};  // an ordinary and an exportable one
    const Exchange* exchange = nullptr;
    /// Physical memory that nobody else may have is made of the pool's units; and also what could
    /// be exported, which it cannot be then.
    bool leases = false;
    bool leases_exportable = false;
    /// Each worker has a context of its own now and then, beside the one that all share, and a
    /// green one, which is a part of that.
    bool contexts = false;
  };
  Worker(const Shared& shared, uint64_t seed);

  void Run(uint64_t calls);
  /// Gives everything back.
  void Clear();
  /// The shared context is done with everything: what was written last into each block is there.
  void CheckBlocks();
  /// The context that all share is about to end, with what this worker has in it. The rest stays:
  /// what came from a memory pool, physical memory, and the worker's own context.
  void LeaveShared();
  /// There is another one.
  void EnterShared(CUcontext context, CUfunction fill);
  void OpenContext();
  void CloseContext();
  /// Null: it has none of its own now.
  CUcontext own_context() const { return second_.context; }
  /// The session lives in the worker's own context now.
  void TakeSession() { second_.has_session = true; }
  const Tally& tally() const { return tally_; }
  uint64_t refused() const { return refused_; }
  /// Of the driver, as random ones go (not those that set one up).
  uint64_t calls() const { return calls_; }
  uint64_t imports() const { return imports_; }
  uint64_t graphs() const { return graphs_made_; }
  /// Leased physical memory: how often it was made, read back after a kernel wrote it through
  /// another mapping, and refused to be exported.
  uint64_t leased() const { return leased_made_; }
  uint64_t compared() const { return compared_; }
  uint64_t kept() const { return kept_; }
  /// Contexts of its own, blocks that went from one context to another, and that ended with one.
  uint64_t contexts() const { return contexts_made_; }
  uint64_t moved() const { return moved_; }
  uint64_t ended() const { return ended_; }
  uint64_t greens() const { return greens_made_; }
  /// How often its own context ended with the session in it.
  uint64_t carried() const { return carried_; }

 private:
  static constexpr size_t kPhysical = 2 * kMiB;
  static constexpr size_t kRangeSlots = 4;
  static constexpr size_t kMostUnits = 3;
  static constexpr size_t kLeasedSlots = 6;
  static constexpr size_t kLeasedSlot = kMostUnits * kUnit;

  struct BlockOf {
    CUdeviceptr at;
    size_t bytes;
    CUstream stream;       // null: cuMemAlloc
    uint64_t live = 0;     // of the arena
    uint32_t written = 0;  // into its first words; 0: nothing yet
  };
  struct ArrayOf {
    CUarray array;
    CUmipmappedArray mipmapped;
    uint64_t bytes;
  };
  struct PhysicalOf {
    CUmemGenericAllocationHandle handle;
    int slot;  // where it is mapped; -1: nowhere
    bool imported;
  };
  /// Made of the pool's units. One stream writes it, so that what was written last is known.
  struct LeasedOf {
    CUmemGenericAllocationHandle handle;
    uint32_t handles;  // how often it was given out and not released
    size_t units;
    CUstream stream;
    std::vector<size_t> slots;  // where it is mapped
    uint32_t written[kMostUnits];
    bool exportable;
  };
  struct ManagedOf {
    CUdeviceptr at;
    uint64_t bytes;
  };
  /// A context beside the shared one, and what is in it.
  struct Place {
    CUcontext context = nullptr;
    CUfunction fill = nullptr;
    CUstream streams[2] = {};
    CUevent event = nullptr;
    std::vector<BlockOf> blocks;
  };
  struct Second : Place {
    std::vector<void*> registered;
    Tally own;  // what ends with it
    bool has_session = false;
  };
  struct Green : Place {
    CUgreenCtx green = nullptr;
  };

  size_t Pick(size_t count) { return random_() % count; }
  template <typename T>
  static T TakeAt(std::vector<T>* all, size_t at) {
    std::swap((*all)[at], all->back());
    T taken = all->back();
    all->pop_back();
    return taken;
  }
  bool Served(CUresult result);
  void Step();

  // churn_worker.cc
  void Write(BlockOf* block, CUfunction fill);
  static void Check(const BlockOf& block);
  void AllocBlock();
  void FreeBlock() { FreeBlock(Pick(blocks_.size())); }
  void FreeBlock(size_t which);
  void Use();
  void PassOn();
  void Synchronize();
  void CreateArray();
  void DestroyArray();
  void AllocPinned();
  void FreePinned();
  void RegisterHost();
  void UnregisterHost();
  // churn_families.cc
  void AllocManaged();
  void FreeManaged();
  void CreatePhysical();
  void ReleasePhysical();
  bool MapAnywhere(PhysicalOf* memory);
  void ExportPhysical();
  void ImportPhysical();
  void ShareBlock();
  void CaptureGraph();
  void BuildGraph();
  void KeepGraph(CUgraph graph);
  void LaunchGraph();
  void DestroyGraph() { DestroyGraph(Pick(graphs_.size())); }
  void DestroyGraph(size_t which);
  // churn_leased.cc
  void CreateLeased();
  void MapLeased();
  void UseLeased();
  void UnmapLeased();
  void ReleaseLeased();
  void RetainLeased();
  void ExportLeased();
  void ClearLeased();
  CUdeviceptr LeasedAt(size_t slot) const { return leased_range_ + slot * kLeasedSlot; }
  uint32_t ReadWord(const LeasedOf& memory, size_t slot, size_t unit);
  void UnmapSlot(LeasedOf* memory, size_t which);
  void UnmapTwo(LeasedOf* memory, size_t which);
  void ForgetGone();
  // churn_contexts.cc
  void AllocIn(Place* place);
  void UseIn(Place* place);
  void FreeIn(Place* place);
  void MoveWith(Place* place);
  void TakeOver(Place* place, BlockOf block);
  void AllocInSecond() { AllocIn(&second_); }
  void UseSecond() { UseIn(&second_); }
  void FreeInSecond() { FreeIn(&second_); }
  void MoveWithSecond() { MoveWith(&second_); }
  void KeepInSecond();
  void SynchronizeSecond();
  void RetainPrimary();
  // churn_greens.cc
  void OpenGreen();
  void AllocInGreen() { AllocIn(&green_); }
  void UseGreen() { UseIn(&green_); }
  void FreeInGreen() { FreeIn(&green_); }
  void MoveWithGreen() { MoveWith(&green_); }
  void CloseGreen();

  Shared shared_;
  std::mt19937_64 random_;
  CUstream streams_[2] = {};
  CUevent event_ = nullptr;
  CUdeviceptr range_ = 0;
  bool mapped_[kRangeSlots] = {};
  CUdeviceptr leased_range_ = 0;
  bool leased_mapped_[kLeasedSlots] = {};
  std::vector<BlockOf> blocks_;
  std::vector<ArrayOf> arrays_;
  std::vector<PhysicalOf> physical_;
  std::vector<LeasedOf> leased_;
  std::vector<ManagedOf> managed_;
  std::vector<void*> pinned_;
  std::vector<void*> registered_;
  std::vector<CUgraphExec> graphs_;
  std::vector<void*> left_;  // registered in a context that is gone
  Second second_;
  Green green_;
  Tally tally_;
  uint64_t refused_ = 0;
  uint64_t calls_ = 0;
  uint64_t imports_ = 0;
  uint64_t graphs_made_ = 0;
  uint64_t leased_made_ = 0;
  uint64_t compared_ = 0;
  uint64_t kept_ = 0;
  uint64_t contexts_made_ = 0;
  uint64_t moved_ = 0;
  uint64_t ended_ = 0;
  uint64_t greens_made_ = 0;
  uint64_t carried_ = 0;
};

/// While it lives, another context is current.
class Inside {
 public:
  explicit Inside(CUcontext context) { EXPECT_CU(cuCtxPushCurrent_v2(context)); }
  ~Inside() {
    CUcontext popped = nullptr;
    EXPECT_CU(cuCtxPopCurrent_v2(&popped));
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace sluice::hooks
