// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "common/status.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/record/record.h"

/// A budget below the pool that changes while jobs run (Zico, Lim et al., USENIX ATC 2021, section
/// 7.3). What lies beyond it is in the books a job that holds it for good, so a smaller budget is
/// one more promise, made when it is safe (I3), and nothing else has to know of budgets.
///
/// First it is promised: nobody is promised any of it from then on. Then it is taken, once what is
/// held leaves room for it. Everything here leaves the ledger and the records as they were where it
/// fails; who calls stamps the records (Record::t_ns).
namespace sluice::scheduler {

/// Lets the job `id` (kBeyondBudget on a node) have `units` (at least one, not less than it holds).
/// kResourceExhausted: I0 has no room for it; the text names who was promised it.
Status PromiseBallast(JobId id, Units units, Ledger* ledger, std::vector<Record>* records);

/// Has it hold what it was promised. False: that is not free, not safe now, or somebody is measured
/// or in host memory, who would come back to units that are gone. What it held it keeps, and what
/// comes to that fills the smallest holes first: jobs need long runs.
bool TakeBallast(JobId id, Ledger* ledger, std::vector<Record>* records);

/// Gives back all but `units` of it, the promise with them. 0: it is gone.
void ShrinkBallast(JobId id, Units units, Ledger* ledger, std::vector<Record>* records);

}  // namespace sluice::scheduler
