// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/driver/array.h"
#include "simgpu/driver/context.h"
#include "simgpu/driver/external_memory.h"
#include "simgpu/driver/mem_pool.h"
#include "simgpu/memory/address_space.h"
#include "simgpu/memory/executor_set.h"
#include "simgpu/memory/foreign_memory.h"
#include "simgpu/memory/graph_memory.h"
#include "simgpu/memory/host_memory.h"
#include "simgpu/memory/virtual_memory.h"
#include "simgpu/sharing/gpu_state.h"

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

  std::mutex mutex;  // of all that follows
  std::unique_ptr<GpuState> gpu;
  uint32_t process = kNobody;
  AddressSpace space;
  ExecutorSet executors;
  std::unique_ptr<VirtualMemory> virtual_memory;
  std::unique_ptr<HostMemory> host_memory;
  std::unique_ptr<ForeignMemory> foreign_memory;
  std::unique_ptr<GraphMemory> graph_memory;
  std::vector<std::unique_ptr<Context>> contexts;  // destroyed ones included
  GraphState* graphs = nullptr;                    // has a lock of its own
  Context* primary = nullptr;
  int primary_references = 0;
  std::unique_ptr<EventBoard> event_board;  // once an event is shared
  CUmemoryPool default_pool = nullptr;      // never changes
  CUmemoryPool current_pool = nullptr;

  Slab<CUstream_st> streams;
  Slab<CUevent_st> events;
  Slab<CUmod_st> modules;
  Slab<CUfunc_st> functions;
  Slab<CUmemPoolHandle_st> pools;
  Slab<CUlib_st> libraries;
  Slab<CUkern_st> kernels;
  Slab<CUarray_st> arrays;
  Slab<CUextMemory_st> external_memories;
  Slab<CUmipmappedArray_st> mipmapped_arrays;

  /// These lock.
  CUresult NewContext(Context** out);
  CUresult RetainPrimary(Context** out);
  CUresult ReleasePrimary(bool all);
  bool Pinned(uint64_t address, uint64_t bytes);

  CUmemoryPool NewPool(const CUmemPoolProps& props);
  /// One of the pool's references ends.
  void ReleasePool(CUmemoryPool pool);

  /// The context behind a handle, null if it never was one.
  Context* FindContext(CUcontext handle);
  /// Null if it cannot be opened.
  EventBoard* Events();
};

/// The calling thread's stack of current contexts.
std::vector<Context*>& ContextStack();

/// Whether a call that a stream capture does not see may be made now (cuMemAlloc, cuEventQuery and
/// the like; cuThreadExchangeStreamCaptureMode says when not).
CUresult UnsafeInCapture();

/// Whether the calling thread is one of the driver's own, which run the program's functions: those
/// must not call the driver.
bool& InHostFunction();

/// The current context, or why a call that needs one cannot go on.
CUresult CurrentContext(Context** out);

/// As CurrentContext, but of `handle` where it is not null.
CUresult NamedContext(CUcontext handle, Context** out);

/// Says once on stderr that `name` is not implemented.
CUresult NotSupported(const char* name);

/// Simulated CPU cost of a driver call.
void SpendDriverTime(const Driver& driver, uint64_t simulated_ns);

/// The same for a call that changes mappings: where the machine file says so, one of them at a time
/// over all processes of the GPU.
void SpendMappingTime(const Driver& driver, uint64_t simulated_ns);

}  // namespace sluice::simgpu
