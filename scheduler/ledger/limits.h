// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>

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

/// The largest claim with which the gate of `job` can open at all while the others keep what they
/// hold at their troughs. What a dead job holds counts as free until nobody waits for it any more.
Units LargestClaim(const Ledger& ledger, JobId job);

}  // namespace sluice::scheduler
