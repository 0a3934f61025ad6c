// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

/// Words that every room of the scheduling library shares. Everything here is a value: no clock, no
/// thread, no lock, no I/O. Amounts and offsets count lease units of one pool; bytes and
/// nanoseconds say so in their names. Values own what they contain. Nothing synchronises: const
/// members may be called from several threads at once, anything else needs its caller's lock. No
/// function throws (but for memory); what can fail returns a Status.
namespace sluice::scheduler {

using Units = uint32_t;
using JobId = uint32_t;
using ReleaseId = uint64_t;  // unique per job among its releases that are not fenced yet

inline constexpr JobId kNoJob = 0;
/// Whoever holds what is beyond a node's budget (scheduler/budget): no job, but one in the books.
inline constexpr JobId kBeyondBudget = 0xfffffffe;
/// No bound on the pieces a job may ask for: its whole remaining claim has to lie in one run.
inline constexpr Units kWholeClaim = 0xffffffff;

/// Units [offset, offset + length). A list of them is *sorted* by offset and *merged* (no two touch
/// or overlap, none is empty) wherever a function says so.
struct Extent {
  Units offset = 0;
  Units length = 0;
  Units end() const { return offset + length; }
  friend bool operator==(const Extent&, const Extent&) = default;
};
using Extents = std::vector<Extent>;

inline Units TotalUnits(const Extents& extents) {
  Units total = 0;
  for (const Extent& extent : extents) total += extent.length;
  return total;
}

/// Life of a job: waiting -> unprofiled -> parked <-> running, from anywhere to dying. A running
/// job that loses its profile is unprofiled again. Past its gate: kUnprofiled and kRunning.
/// Evicted: it stands still in the middle of its iteration, with what it had outside its base in
/// host memory.
enum class Phase : uint8_t { kWaiting, kUnprofiled, kParked, kRunning, kEvicted, kDying };

/// kSpare: given back and its fence reached, yet still counted as held by its job, because freeing
/// it now could leave the job without the run it was promised (Ledger::Reclaim).
enum class UnitState : uint8_t { kFree, kLeased, kUnfenced, kSpare, kQuarantined };

/// How long a dead job's last holder has lived on, as far as decisions go. Mostly it is gone within
/// milliseconds; a forked child may keep the memory for hours. Whoever keeps the ledger has the
/// clock.
enum class Linger : uint8_t {
  kNot,      // its memory is about to come back: worth waiting for
  kAWhile,   // others go on beside it where what is free suffices
  kForGood,  // nobody waits for it any more, as if its memory were no part of the pool
};

/// The end of the pool from which a job takes its memory.
enum class End : uint8_t { kLow, kHigh };

/// Which rules are in force. All of them always are, except in the model check, which switches each
/// one off to prove that it would notice.
struct Rules {
  bool count_unfenced = true;   // released units stay held until their fence is reached
  bool check_safety = true;     // grants and gates leave I3 true
  bool check_admission = true;  // I0
  bool check_raise = true;      // a claim raise leaves I3 true
  bool keep_spare = true;       // fenced units become free only if I3 stays true
  bool measure_alone = true;    // I7: no gate opens while a job without a profile is measured
};

const char* PhaseName(Phase phase);
const char* UnitStateName(UnitState state);

}  // namespace sluice::scheduler
