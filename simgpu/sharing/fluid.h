// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/machine.h"

namespace sluice::simgpu {

inline constexpr uint32_t kFluidContexts = 64;
inline constexpr uint32_t kFlights = 8;  // operations of one context under way at one time
inline constexpr uint32_t kNoTurn = UINT32_MAX;

/// The part of the GPU that an operation occupies.
enum class Engine : uint32_t { kCompute, kToDevice, kToHost };

/// An operation under way: some of its time alone is left, and it goes on at a rate that depends on
/// what else is under way.
struct FluidOp {
  enum State : uint32_t { kFree = 0, kRunning = 1, kEnded = 2 };
  uint32_t state;
  Engine engine;
  uint32_t body_done;  // the host has carried it out; its time may not end before that
  uint32_t begun;      // some of its time has passed
  double remaining_ns;
  double rate;
  GpuDemand demand;
  uint64_t ended_ns;  // device clock
  double early_ns;    // by how much it ended before the clock's time: the host started it too late
};

/// What is under way on a GPU whose operations may overlap. Plain data, in shared memory.
struct Fluid {
  double clock_ns;
  double busy_ns;    // time in which some compute operation went on
  double slice_ns;   // what the context whose turn it is has used of its time slice; below 0 the
                     // GPU is still changing to it
  uint32_t turn;     // that context, or kNoTurn
  uint32_t stalled;  // 1: the clock stands until the host has carried out an operation
  uint64_t switches;
  double computed_until[kFluidContexts];  // clock until which a context last used the SMs
  FluidOp op[kFluidContexts][kFlights];
};

struct FluidRules {
  Sharing sharing = Sharing::kTimeSlice;
  double quantum_ns = 2e6;
  double switch_ns = 0;
  bool one_copy_engine = false;
  /// Turns change at the end of an operation only when Settle is called: in virtual time the
  /// context begins its next operation at the same instant, and keeps its turn.
  bool settles = false;
  /// One operation at a time, over all contexts and engines, and none is interrupted: a turn that
  /// used up its time slice passes on between two operations. Needs `settles`.
  bool exclusive = false;
};
FluidRules RulesOf(const Machine& machine);

/// Lets up to `ns` of device time pass: rates change whenever an operation ends or a time slice is
/// used up. Stops early, for good, at an operation whose time is over while the host still works at
/// it: nothing may overtake that. Pure.
void Advance(Fluid* fluid, const FluidRules& rules, double ns);

/// The rates that hold now; to be called after operations were added or taken away.
void SetRates(Fluid* fluid, const FluidRules& rules);

/// Device time until the operation ends if the rates stay; infinite if it does not go on.
double TimeToEnd(const FluidOp& op);

/// All contexts have begun what they can at this instant: a turn without work passes on.
void Settle(Fluid* fluid, const FluidRules& rules);

/// Device time until Advance does more than pass time; infinite if nothing goes on.
double TimeToNext(const Fluid& fluid, const FluidRules& rules);

}  // namespace sluice::simgpu
