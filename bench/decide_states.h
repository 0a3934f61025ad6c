// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "scheduler/policy/policy.h"

namespace sluice::bench {

/// What a decision is made on.
struct DecideState {
  scheduler::Ledger ledger;
  std::vector<scheduler::Request> requests;
};

/// Jobs with bases that lie interleaved, in `pieces` pieces in all, at one end of the pool; each
/// asks for runs of up to a 64th of the pool, so that where memory lies matters.
struct DecideShape {
  scheduler::JobId jobs = 8;
  scheduler::Units pool_units = 512;
  uint32_t pieces = 10;  // at most a quarter of the pool
};

struct DecideSequence {
  std::vector<DecideState> states;
  size_t decided = 0;     // of the states: Next answered
  size_t considered = 0;  // requests that waited in them, in all
};

/// The state before each call of Next while the jobs cycle: gate 0, gates that ask for more, gates
/// that give back, the fences a turn later, the trough. All jobs may be past their gate at once,
/// and the pool has room for the peaks of about three.
DecideSequence Cycle(const DecideShape& shape);

/// All jobs wait and none can go on: half of them stand inside their iteration and want more than
/// is free, the others want to begin theirs. One job more came to its trough before its GPU had
/// passed what it gave back, and that is what everybody waits for: the state is safe.
DecideState AllWait(const DecideShape& shape);

}  // namespace sluice::bench
