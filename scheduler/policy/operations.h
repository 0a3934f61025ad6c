// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <vector>

#include "scheduler/policy/policy.h"
#include "scheduler/safety/safety.h"

namespace sluice::scheduler {

/// Apply without the safety net: after an error the ledger may be half changed. For ledgers that
/// are thrown away then.
Status MakeOperations(const Decision& decision, const std::vector<Request>& requests,
                      Ledger* ledger);

/// What MakeOperations would change, without a ledger to make it on; nullopt: it would fail, as the
/// job's claim or its limit has no room for what it would hold. The extents are free or spare units
/// as they have to be, the terms within the limit: a round proposes nothing else.
std::optional<Change> ChangeOf(const Decision& decision, const std::vector<Request>& requests,
                               const Ledger& ledger);

/// As much as all who have begun may come to hold at the same time, `begins` among them. Where that
/// fits into the pool nobody waits for what another one holds.
uint64_t MayHold(const Ledger& ledger, JobId begins = kNoJob);

/// The end of the pool with fewer other jobs on it; the low one when they are equal.
End FreeLane(const Ledger& ledger, JobId job);

/// What the job would hold with the request granted and its own spare units used or freed.
uint64_t HeldAfter(const Job& job, const Request& request);

/// What it waives once the request is granted. Who asks for more than it said it would (it left its
/// curve) takes back as much of what it waived: a promise anew, which I3 has to allow.
Units WaivedAfter(const Job& job, const Request& request);

}  // namespace sluice::scheduler
