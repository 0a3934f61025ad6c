// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "bench/decide_pool.h"

namespace sluice::bench {

/// What a decision is made on.
struct DecideState {
  scheduler::Ledger ledger;
  std::vector<scheduler::Request> requests;
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

/// The same, but who is past its gate does without a unit of its base that is free: it may be
/// granted it again, and keeps it then, so that nobody else counts on it.
DecideSequence WithoutAUnitOfTheBases(DecideSequence sequence);

/// All jobs wait and none can go on: half of them stand inside their iteration and want more than
/// is free, the others want to begin theirs. One job more came to its trough before its GPU had
/// passed what it gave back, and that is what everybody waits for: the state is safe.
DecideState AllWait(const DecideShape& shape);

}  // namespace sluice::bench
