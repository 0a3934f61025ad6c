// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>

#include "scheduler/ledger/ledger.h"

/// The rules for limits and requests that nobody gave on the command line (docs/design/runtime.md,
/// section 4): pure functions of the ledger.
namespace sluice::flow {

/// `units` and a tenth, rounded up; at least one.
scheduler::Units WithTenth(scheduler::Units units);

/// Whether a job's limit may still fall: it was given none and has not begun.
using MayYield = std::function<bool(scheduler::JobId)>;

/// Gives `job` as much of `request` as fits beside the limits of the others (I0), after lowering the
/// limits of those that may yield. Its request never exceeds its limit.
void SetRequest(scheduler::Ledger* ledger, scheduler::JobId job, scheduler::Units request,
                const MayYield& may_yield);

/// Lowers the limits of those that may yield so that `request` for `job` fits beside them.
void MakeRoom(scheduler::Ledger* ledger, scheduler::JobId job, scheduler::Units request,
              const MayYield& may_yield);

/// The largest claim with which the gate of `job` can open at all while the others keep what they
/// hold at their troughs.
scheduler::Units LargestClaim(const scheduler::Ledger& ledger, scheduler::JobId job);

}  // namespace sluice::flow
