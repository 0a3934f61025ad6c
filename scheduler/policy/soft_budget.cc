// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/soft_budget.h"

#include <algorithm>

#include "scheduler/policy/operations.h"
#include "scheduler/safety/safety.h"

namespace sluice::scheduler {

Units CountedOn(const Ledger& ledger, const Config& config) {
  const Units pool = ledger.pool_units();
  if (config.soft_budget == 0) return pool;
  const uint64_t lent = uint64_t{config.soft_budget} + ledger.held(kBeyondBudget);
  return static_cast<Units>(std::min<uint64_t>(lent, pool));
}

bool FitsSoftBudget(const Asked& asked) {
  const Ledger& ledger = asked.ledger;
  const Request& request = asked.request;
  const Units withheld = ledger.pool_units() - CountedOn(ledger, asked.config);
  if (withheld == 0) return true;
  if (Occupants(ledger, request.job) == 0) return true;
  const bool begins = request.kind == RequestKind::kGate0;
  const Sums sums(ledger, withheld);
  // More was promised than the budget when it came into force: those inside end their iterations.
  if (!begins && !sums.safe()) return true;
  const Job& job = *ledger.Find(request.job);
  const uint64_t held = HeldAfter(job, request);
  const uint64_t more = held - std::min<uint64_t>(held, job.held());
  // What comes back by itself is not there yet.
  if (ledger.free() < withheld + more) return false;
  const uint64_t ahead = begins ? std::max<uint64_t>(request.claim, held)
                                : job.terms.claim - WaivedAfter(job, request);
  return sums.SafeWith(job.id, held, ahead, begins ? request.returns : job.terms.returns);
}

}  // namespace sluice::scheduler
