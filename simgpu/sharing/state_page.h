// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>

#include "simgpu/sharing/fluid.h"
#include "simgpu/sharing/injection.h"
#include "simgpu/sharing/memory_family.h"
#include "simgpu/sharing/process_id.h"
#include "simgpu/sharing/shared_mutex.h"
#include "simgpu/sharing/virtual_time.h"

namespace sluice::simgpu {

inline constexpr uint64_t kStateMagic = 0x3155504753434c53u;
inline constexpr uint32_t kStateVersion = 11;
inline constexpr uint32_t kMaxProcesses = 128;  // running and the last finished ones
inline constexpr uint32_t kMaxFinished = 64;
inline constexpr uint32_t kMaxExecutors = 64;
inline constexpr uint32_t kKeptViolations = 16;
inline constexpr uint32_t kKeptXids = 64;
inline constexpr uint32_t kMaxMemoryLimits = 64;
inline constexpr uint32_t kFamilySlots = 16;  // room for families to come
static_assert(kFamilies <= kFamilySlots);
inline constexpr uint32_t kNobody = UINT32_MAX;

/// Bytes of one process and family. `requested` is what the program asked for and has not given
/// back, `held` what that takes of the GPU (chunks and reserves included; nothing for another
/// process's memory).
struct FamilyBytes {
  std::atomic<uint64_t> requested;
  std::atomic<uint64_t> held;
};

/// A program that has used the GPU. Its statistics outlive it.
struct ProcessEntry {
  enum State : uint32_t { kFree = 0, kRunning = 1, kFinished = 2 };
  uint32_t state;
  uint32_t order;  // of finishing; the oldest finished entry is reused first
  ProcessId id;
  char name[32];
  uint32_t draws;  // 1: it counts as a graphics process, too
  uint32_t reserved;
  uint64_t memory_group;  // its control group (memory_limits.h)
  std::atomic<uint64_t> kernels;
  std::atomic<uint64_t> busy_ns;
  std::atomic<uint64_t> bytes_now;  // held, over all families
  std::atomic<uint64_t> bytes_peak;
  FamilyBytes family[kFamilySlots];
};

/// One executor, that is one context of a running program.
struct ExecutorEntry {
  uint32_t used;
  ProcessId id;
  ProcessId client;
  uint32_t process;             // index of the client's ProcessEntry
  uint64_t ticket;              // place among those who wait for the device token; 0: does not wait
  std::atomic<uint32_t> grant;  // futex: 1 once the device token was handed to this executor
};

struct Violation {
  int32_t pid;
  uint32_t reserved;
  char kernel[64];
  uint64_t pool_offset;
};

/// What the programs of a control group may have together. Group 0: none of them.
struct MemoryLimit {
  uint64_t group;
  uint64_t soft;  // remembered
  uint64_t hard;
};

/// An error that the GPU reports to who watches it (NVML events).
struct Xid {
  uint64_t code;
  uint64_t clock_ns;  // device clock when it happened
};

/// The shared state of one simulated GPU (file DIR/state), mapped by drivers, executors, NVML and
/// simgpu-ctl. All fields but the atomic ones are read and written under `guard`: a process killed
/// inside it leaves numbers that are at worst one update old.
struct StatePage {
  uint64_t magic;
  uint32_t version;
  uint32_t
      kernel_enforced;  // 1: DIR/gpu0 is a tmpfs of `capacity` bytes; 0: counted in this page only
  uint64_t capacity;
  unsigned char uuid[16];
  SharedMutex guard;
  SharedMutex mapping_turn;  // whose call changes mappings, if one at a time may

  // Device clock (simulated ns since the GPU came up). While `busy` it stands at clock_ns, plus
  // what has elapsed of the running operation; while nobody holds the token it follows real time.
  uint64_t clock_ns;
  uint64_t real_mark_ns;  // monotonic time at which clock_ns was true and the device fell idle
  uint32_t busy;
  uint32_t reserved0;
  uint64_t op_started_real_ns;  // 0: no operation is running
  uint64_t op_declared_ns;

  // Counters.
  uint64_t busy_ns;
  uint64_t kernels;
  uint64_t first_start_ns;  // device clock; UINT64_MAX before the first operation
  uint64_t last_end_ns;
  uint64_t token_switches;
  uint64_t faults;  // operations that ended at an address without access
  uint64_t oracle_violations;
  Violation violation[kKeptViolations];  // a ring: the last one is number oracle_violations - 1

  // Device token: which executor may run operations. Waiters are served by ticket. There is no
  // queue: an executor may be killed anywhere in here, and must not take a waiter with it.
  uint32_t owner;     // index into executor[], or kNobody
  int32_t last_pid;   // client that ran last, to count switches between processes
  uint64_t slice_ns;  // device time the owner has used since it got the token
  uint64_t next_ticket;

  // A ring: the last one is number xids - 1. `xid_bell` moves with each (futex).
  std::atomic<uint32_t> xid_bell;
  uint32_t reserved1;
  uint64_t xids;
  Xid xid[kKeptXids];

  // Calls that come late or fail. `injections` is 0 while the slots change.
  std::atomic<uint32_t> injections;
  uint32_t reserved2;
  InjectionSlot injection[kMaxInjections];

  // How many of the limits are one.
  std::atomic<uint32_t> memory_limits;
  uint32_t reserved3;
  MemoryLimit memory_limit[kMaxMemoryLimits];

  // Where operations may overlap: what is under way, instead of device clock and token above. True
  // at the monotonic time `fluid_mark_ns`.
  Fluid fluid;
  uint64_t fluid_mark_ns;

  // In virtual time: who may go on, and futexes by which they learn it (1: rung). `fluid` is then
  // what is under way whether operations overlap or not.
  VirtualTime time;
  std::atomic<uint32_t> wait_bell[kVirtualWaits];
  std::atomic<uint32_t> context_bell[kFluidContexts];

  uint32_t finished_counter;
  ProcessEntry process[kMaxProcesses];
  ExecutorEntry executor[kMaxExecutors];
};

}  // namespace sluice::simgpu
