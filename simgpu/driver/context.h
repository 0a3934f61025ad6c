// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "simgpu/driver/context_limits.h"
#include "simgpu/driver/heap.h"
#include "simgpu/driver/objects.h"
#include "simgpu/streams/command_queue.h"

namespace sluice::simgpu {

class Driver;
struct Device;

/// One CUDA context: its executor, its command queue, its streams, events, modules and memory.
/// `mutex` is the driver lock of the context: a launch that finds the queue full waits while it
/// holds it.
class Context : private BlockPool::Order {
 public:
  static CUresult Create(Driver* driver, Device* device, std::unique_ptr<Context>* out);
  ~Context() override;

  std::mutex mutex;
  Driver* driver() const { return driver_; }
  Device* device() const { return device_; }
  ExecutorLink* link() const { return link_.get(); }
  CommandQueue& queue() const { return *queue_; }
  bool destroyed() const { return destroyed_.load(); }
  /// Waits for the work, ends the executor. The object stays, so that stale handles are recognised.
  void Destroy();

  // Streams. `per_thread` says what stream 0 means to the entry point that was called.
  /// For what cannot be captured; ends captures that it would break.
  CUresult Resolve(CUstream handle, bool per_thread, CUstream* out);
  /// For what becomes a node of a graph when the stream is `*capturing`.
  CUresult ResolveToCapture(CUstream handle, bool per_thread, CUstream* out, bool* capturing);
  /// For what only asks about the stream.
  CUresult Lookup(CUstream handle, bool per_thread, CUstream* out);
  CUresult NewStream(CUstream* out, bool blocking, int priority);
  void DeleteStream(CUstream stream);
  /// Positions that a synchronisation with `stream` has to reach (with the legacy stream: those of
  /// all blocking streams too).
  std::vector<uint64_t> MarksOf(CUstream stream);
  std::vector<uint64_t> AllMarks();
  CUresult WaitFor(const std::vector<uint64_t>& marks);
  bool Reached(const std::vector<uint64_t>& marks) const;

  /// Issues a command on a stream, filling in what identifies it. 0: the context has failed.
  uint64_t Issue(CUstream stream, Command* command, CommandQueue::Lock& held);

  // Events.
  CUresult NewEvent(CUevent* out, unsigned flags);
  void DeleteEvent(CUevent event);

  // Memory. The caller holds `mutex`.
  Heap* plain_heap();
  Heap* array_heap();
  /// This context's part of a pool, made when it is first used; null when there is no room.
  Heap* pool_heap(CUmemoryPool pool);
  /// The same, null when it was never used.
  Heap* FindPoolHeap(CUmemoryPool pool) const;
  /// The heap of the program's memory that an address lies in; `*pool` is null for cuMemAlloc's.
  Heap* HeapAt(uint64_t address, CUmemoryPool* pool) const;
  /// What a synchronisation point does to the pools.
  void TrimPools();
  /// Gives back all that pools keep in reserve.
  void EmptyPools();

  std::atomic<int> uses{1};  // by cuCtxCreate and cuCtxAttach; cuCtxDestroy does not ask

  // Of cuCtxSetLimit; under `mutex`.
  ContextLimits limits;
  /// Takes the memory that FIFO and heap of these sizes need beyond what the context has, then
  /// stores `value`. The caller holds the driver's lock too.
  CUresult Reserve(size_t fifo_bytes, size_t heap_bytes, size_t* field, size_t value);

  /// As this context's executor numbers `other`'s, which it learns of at the first time; 0 if that
  /// failed. The caller holds the driver's lock.
  uint32_t PeerOf(Context* other);

  /// `function` will be called by a helper thread when the host function with the returned ticket
  /// is reached. The ticket is given away for one operation only.
  uint64_t ExpectHostFunction(std::function<void()> function);
  /// The operation with this ticket was not issued after all.
  void ForgetHostFunction(uint64_t ticket);

 private:
  Context(Driver* driver, Device* device) : driver_(driver), device_(device) {}
  std::unique_ptr<Heap> NewHeap(Family family);
  void StartCaptureState(CUstream stream);
  bool Completed(const StreamMark& mark) const override;
  bool Follows(uint32_t stream, const StreamMark& mark) const override;
  using PoolHeaps = std::map<CUmemoryPool, std::unique_ptr<Heap>>;
  PoolHeaps::iterator DropPoolHeap(PoolHeaps::iterator heap);
  CUstream PerThreadStream();
  void EndCharge();
  void EndReserve();
  void HostFunctionLoop();

  Driver* driver_;
  Device* device_;
  std::unique_ptr<ExecutorLink> link_;
  std::unique_ptr<CommandQueue> queue_;
  std::atomic<bool> destroyed_{false};

  std::vector<CUstream> streams_;    // by slot; null: unused
  std::vector<uint64_t> slot_last_;  // by slot: last operation, also of former streams
  std::map<std::thread::id, CUstream> per_thread_;
  std::vector<uint32_t> free_events_;
  std::vector<std::pair<uint64_t, uint32_t>> retired_events_;  // position to reach, slot
  uint32_t next_event_ = 0;
  std::unique_ptr<Heap> plain_heap_;
  std::unique_ptr<Heap> array_heap_;
  PoolHeaps pool_heaps_;

  std::map<const Context*, uint32_t> peers_;

  std::mutex host_mutex_;
  std::map<uint64_t, std::function<void()>> host_functions_;  // by ticket
  uint64_t next_ticket_ = 1;
  std::thread host_thread_;
  std::atomic<bool> stop_{false};
};

}  // namespace sluice::simgpu
