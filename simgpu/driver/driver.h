// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/driver/array.h"
#include "simgpu/driver/context.h"
#include "simgpu/driver/device.h"
#include "simgpu/driver/external_memory.h"
#include "simgpu/driver/green_context.h"
#include "simgpu/driver/heap_views.h"
#include "simgpu/driver/mem_pool.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/executor_set.h"
#include "simgpu/memory/foreign_memory.h"
#include "simgpu/memory/host_memory.h"
#include "simgpu/memory/virtual_memory.h"
#include "simgpu/streams/virtual_host.h"

namespace sluice::simgpu {

inline constexpr int kDriverVersion = 13000;

struct GraphState;

/// The driver within one process. Made by cuInit and never destroyed: other threads may be inside
/// it when the process exits. Lock order: that of the graphs, `mutex`, then a context's,
/// then its control socket's.
class Driver {
 public:
  /// cuInit. Errors are said once on stderr.
  static CUresult Init();
  /// Null before cuInit, and in a forked child, where CUDA does not work.
  static Driver* Get();

  // Set by cuInit and not changed after it.
  std::vector<std::unique_ptr<GpuState>> gpus;  // of the machine, seen or not
  DeviceUses uses;                              // those that are seen
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<VirtualHost> virtual_time;  // null where the clock follows real time

  std::mutex mutex;  // of all that follows
  AddressSpace space;
  ExecutorSet executors;
  HeapViews views;  // has a lock of its own
  std::unique_ptr<VirtualMemory> virtual_memory;
  std::unique_ptr<HostMemory> host_memory;
  std::unique_ptr<ForeignMemory> foreign_memory;
  std::vector<std::unique_ptr<Context>> contexts;              // destroyed ones included
  std::vector<std::unique_ptr<CUgreenCtx_st>> green_contexts;  // the same
  GraphState* graphs = nullptr;                                // has a lock of its own
  std::unique_ptr<EventBoard> event_board;                     // once an event is shared

  Slab<CUstream_st> streams;
  std::atomic<uint64_t> next_stream_id{1};  // never used again
  Slab<CUevent_st> events;
  Slab<CUmod_st> modules;
  Slab<CUfunc_st> functions;
  Slab<CUmemPoolHandle_st> pools;
  Slab<CUlib_st> libraries;
  Slab<CUkern_st> kernels;
  Slab<CUarray_st> arrays;
  Slab<CUextMemory_st> external_memories;
  Slab<CUmipmappedArray_st> mipmapped_arrays;
  Slab<CUdevResourceDesc_st> resource_descs;

  /// Of all GPUs alike.
  const Machine& machine() const { return gpus.front()->machine(); }
  /// Null if there is none with this number.
  Device* FindDevice(CUdevice ordinal) const;

  /// These lock.
  CUresult NewContext(Device* device, Context** out);
  CUresult RetainPrimary(Device* device, Context** out);
  CUresult ReleasePrimary(Device* device, bool all);
  bool Pinned(uint64_t address, uint64_t bytes);
  /// Whether a device address is one that the program was given, and no mapping that nobody has
  /// access to: a copy or a setting elsewhere is refused, where a kernel would fault.
  bool Given(uint64_t address);

  CUmemoryPool NewPool(const CUmemPoolProps& props);
  /// One of the pool's references ends.
  void ReleasePool(CUmemoryPool pool);

  /// The context behind a handle, null if it never was one. A green context's is that of its
  /// primary one; `green` is then what it was found by.
  Context* FindContext(CUcontext handle, CUgreenCtx* green = nullptr);
  /// Null if it cannot be opened.
  EventBoard* Events();

 private:
  void AddDevices(const std::vector<uint32_t>& visible);
};

/// The calling thread's stack of current contexts.
struct StackedContext {
  Context* context = nullptr;
  CUgreenCtx green = nullptr;  // by which it was made current; null: by its own name
};
std::vector<StackedContext>& ContextStack();

/// Whether a call that a stream capture does not see may be made now (cuMemAlloc, cuEventQuery and
/// the like; cuThreadExchangeStreamCaptureMode says when not).
CUresult UnsafeInCapture();

/// Whether the calling thread is one of the driver's own, which run the program's functions: those
/// must not call the driver.
bool& InHostFunction();

/// The GPU with this number, or why there is none.
CUresult CheckDevice(CUdevice ordinal, Device** out);

/// The current context, or why a call that needs one cannot go on.
CUresult CurrentContext(Context** out);
/// That of a stream. One must be current, which need not be this one: a real driver waits, sets,
/// records, writes words and allocates in the context of the stream.
CUresult ContextOfStream(CUstream handle, Context** out);
/// The same for calls of which the documentation asks for a current context only where the stream
/// is a default one, or of which it names no such error at all.
CUresult StreamsOwnContext(CUstream handle, Context** out);

/// As CurrentContext, but of `handle` where it is not null.
CUresult NamedContext(CUcontext handle, Context** out);

/// A question whether work is over is about to be answered: in virtual time it costs time, and the
/// device has come that far.
void AskDevice(const Driver& driver);

/// Says once on stderr that `name` is not implemented.
CUresult NotSupported(const char* name);

/// Simulated CPU cost of a driver call.
void SpendDriverTime(const Driver& driver, uint64_t simulated_ns);

/// The same for a call that changes mappings: where the machine file says so, one of them at a time
/// over all processes of the machine.
void SpendMappingTime(const Driver& driver, uint64_t simulated_ns);

}  // namespace sluice::simgpu
