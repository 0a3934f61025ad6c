// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "scheduler/ledger/ledger.h"

/// The rules for limits and requests that nobody gave on the command line (docs/design/runtime.md,
/// section 4): pure functions of the ledger.
namespace sluice::scheduler {

/// `units` and a tenth, rounded up; at least one.
Units WithTenth(Units units);

/// What a job on a node claims that needs `units`: a fiftieth more, rounded up, and its largest
/// block, `piece`, more at least (docs/design/runtime.md, section 4).
Units WithClaimMargin(Units units, Units piece);

/// Whether a job's limit may still fall: it was given none and has not begun.
using MayYield = std::function<bool(JobId)>;

/// Gives `job` as much of `request` as fits beside the limits of the others (I0), after lowering
/// the limits of those that may yield. Its request never exceeds its limit.
void SetRequest(Ledger* ledger, JobId job, Units request, const MayYield& may_yield);

/// Lowers the limits of those that may yield so that `request` for `job` fits beside them.
void MakeRoom(Ledger* ledger, JobId job, Units request, const MayYield& may_yield);

/// The least limit that takes nothing from a job, and what it is made of.
struct LeastLimit {
  enum class Of : uint8_t { kHeld, kPromised, kNeeded };
  Units pool = 0;     // what the job has of the pool, or counts on there
  Units outside = 0;  // what it has beside that, outside the pool
  Of of = Of::kHeld;  // what `pool` is
  Units units() const;
};

/// `needs`: most that the job is known to come to in the pool; 0: nobody knows. `outside`: what it
/// has outside the pool, as it counts under the limit that is asked about. What was promised and
/// what is needed counts as far as the limit of now leaves room for it, so that the same limit and
/// a higher one are never below the least. A claim of a job without a profile falls with its limit.
LeastLimit LeastLimitOf(const Job& job, Units needs, Units outside);

/// kFailedPrecondition: `limit` is below the least for `who`. Names it, and what it is made of.
Status CheckLimit(const Ledger& ledger, const std::string& who, Units limit,
                  const LeastLimit& least);

/// The largest claim with which the gate of `job` can open at all while the others keep what they
/// hold at their troughs. What a dead job holds counts as free until nobody waits for it any more.
Units LargestClaim(const Ledger& ledger, JobId job);

}  // namespace sluice::scheduler
