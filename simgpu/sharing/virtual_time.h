// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>

#include "simgpu/sharing/fluid.h"
#include "simgpu/sharing/process_id.h"

namespace sluice::simgpu {

inline constexpr uint32_t kMostParticipants = 16;
inline constexpr uint32_t kVirtualWaits = 256;
inline constexpr uint64_t kNoArrival = UINT64_MAX;

/// A process whose calls make the time pass. Its threads share one CPU clock: nobody can see how
/// they hand work to each other, so their calls add up in the order in which they are made.
struct Participant {
  enum State : uint32_t { kAbsent = 0, kHere = 1, kLeft = 2 };
  enum Stall : uint32_t {
    kNone = 0,
    kStalled = 1,   // taken for waiting outside the driver: the device goes on without it
    kComesBack = 2  // it is at work in the driver, or has just been woken
  };
  uint32_t state;
  Stall stall;
  ProcessId id;
  uint64_t clock_ns;
};

/// A thread that waits in the driver.
struct VirtualWait {
  enum Kind : uint32_t {
    kFree = 0,
    kTurn,       // for its process's turn at its process's clock
    kOperation,  // for operation `target` of stream `stream` of context `executor`
    kFinished,   // for `target` finished operations of context `executor`
    kProgress,   // for anything to happen on the device
    kGranted,    // no more: the thread goes on
  };
  Kind kind;
  uint32_t rank;
  uint32_t ready;
  uint32_t executor;
  uint32_t stream;
  uint64_t target;
  uint64_t at_ns;  // not before; once ready, exactly then
  uint64_t order;
};

/// The GPU side of one context.
struct VirtualContext {
  uint32_t present;
  uint32_t rank;
  uint32_t awake;          // has something to look at, at this instant
  uint32_t looks_outside;  // some stream waits for what others do: memory, other contexts
  uint32_t function_out;   // a host function has been called and has not returned
  uint64_t next_arrival_ns;
};

/// Who may go on, of the participants' hosts (by rank) and the contexts' executors (by number).
struct Turn {
  enum Holder : uint32_t { kNobody = 0, kHost = 1, kContext = 2 };
  Holder holder;
  uint32_t index;
  bool operator==(const Turn&) const = default;
};

/// Virtual time: a simulation of discrete events whose parts are programs. One of them goes on at a
/// time, always that with the smallest clock, and the device clock moves only when all wait. Plain
/// data, in shared memory, zero at the start; the functions are pure.
struct VirtualTime {
  uint32_t expected;  // participants of a round; set by whoever joins
  uint32_t open;      // all of them have joined
  Turn turn;
  uint64_t next_order;
  uint64_t mapping_until_ns;  // calls that change mappings, where they go one at a time
  uint64_t stalls;            // how often the device went on because a program waited elsewhere
  Participant participant[kMostParticipants];
  VirtualWait wait[kVirtualWaits];
  VirtualContext context[kFluidContexts];
};

/// The device clock in whole nanoseconds.
uint64_t NowNs(const Fluid& fluid);

/// Whether a process may join as `rank`: it is free, and this round has not had it yet.
bool MayJoin(const VirtualTime& time, uint32_t rank);
void Join(VirtualTime* time, uint32_t rank, const ProcessId& id, uint64_t now);
/// The process is gone, its contexts too.
void Leave(VirtualTime* time, uint32_t rank);

/// The rank whose process this is.
std::optional<uint32_t> RankOf(const VirtualTime& time, const ProcessId& id);
/// It seems to wait outside the driver, for the device or for others: they go on without it.
void StallHost(VirtualTime* time, uint32_t rank);
/// A host function of this context has returned: it may have woken its program.
void FunctionReturned(VirtualTime* time, uint32_t context);
/// Whether some thread of it waits in the driver.
bool Waits(const VirtualTime& time, uint32_t rank);
/// The process computes for `ns`; returns its clock then.
uint64_t Spend(VirtualTime* time, uint32_t rank, uint64_t ns, uint64_t now);
/// As Spend, for a call that may go on at one process at a time.
uint64_t SpendInTurn(VirtualTime* time, uint32_t rank, uint64_t ns, uint64_t now);
/// Whether a participant with a smaller clock could go on.
bool MustYield(const VirtualTime& time, uint32_t rank);

/// A thread begins to wait; nothing if too many do. Its process's turn ends.
std::optional<uint32_t> BeginWait(VirtualTime* time, const VirtualWait& wait, uint64_t now);
/// The thread that was granted its turn has noticed.
void EndWait(VirtualTime* time, uint32_t place);
void MakeReady(VirtualWait* wait, uint64_t now);

void Attach(VirtualTime* time, uint32_t context, uint32_t rank);
void Detach(VirtualTime* time, Fluid* fluid, uint32_t context, uint64_t now);
/// What an executor says when it has nothing more to do at this instant.
struct Rest {
  uint64_t next_arrival_ns = kNoArrival;
  bool looks_outside = false;
  bool function_out = false;
  bool progress = false;
};
void EndTurn(VirtualTime* time, uint32_t context, const Rest& rest, uint64_t now);

/// Contexts whose streams wait for what others do look again: memory may be written by whoever.
void LookOutside(VirtualTime* time);

/// Lets time pass until somebody may go on, and says who: a wait (its thread goes on), or a context
/// (its executor does). Nothing if somebody has the turn already, or nothing can happen.
struct Grant {
  enum Kind : uint32_t { kNone, kWait, kContext };
  Kind kind = kNone;
  uint32_t index = 0;
};
Grant PassOn(VirtualTime* time, Fluid* fluid, const FluidRules& rules);

}  // namespace sluice::simgpu
