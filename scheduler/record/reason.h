// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string_view>

/// Why somebody waits, is refused or left its iteration, in one word: what a metric counts by, and
/// what stands beside the sentence in the event log, in `sluice explain` and in `sluice status
/// --json`.
namespace sluice::scheduler {

enum class WaitReason : uint8_t {
  kAdmission,    // others' requests and limits leave no room for its own (I0)
  kMeasurement,  // another job is measured (I7)
  kStandstill,   // another job computes nothing in the middle of its iteration
  kTurn,         // others are in their iterations, or come before it
  kMemory,       // what is free does not suffice, or others were promised it (I3)
  kPlace,        // it would suffice, and no run of it is long enough
  kBudget,       // nobody begins while the budget falls
  kHostMemory,   // its memory is in host memory and has to come back
  kFence,        // its own GPU has not passed yet what it gave back
};

enum class RefusalReason : uint8_t {
  kOverLimit,      // it would hold more than its limit
  kExhausted,      // it waited as long as is allowed
  kGate,           // not all at once at a gate, which opens without: it asks for each piece
  kRefused,        // never admitted: there is no room for its terms
  kOutside,        // outside the pool there is no room
  kSecondProcess,  // another process of the job has the GPU
  kInternal,       // a defect of the daemon
};

enum class DeviationReason : uint8_t {
  kLaunches,     // its launches are not those of its cycle
  kThreads,      // its threads launch in another order
  kStreams,      // it launches on more streams than can be followed
  kCycle,        // its cycle is another one now
  kKept,         // it kept more at its trough than it was to give back
  kRestart,      // it or its profile changed while its daemon was replaced
  kPolicy,       // a policy that knows no iterations is in force now
  kCollectives,  // it takes part in collective operations, and may have fewer gates than it had
};

/// "turn", "over-limit", "launches", ...
std::string_view ReasonName(WaitReason reason);
std::string_view ReasonName(RefusalReason reason);
std::string_view ReasonName(DeviationReason reason);

}  // namespace sluice::scheduler
