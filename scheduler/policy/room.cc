// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a request may count on, without a look at what the others do.
#include <algorithm>

#include "scheduler/policy/operations.h"
#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

namespace {

/// Of so much it has as much left as it asks for, in runs as it said.
bool HasLeft(const Job& job, const Request& request, Units of) {
  // Spare units count as held here: it had them and let them go where it cannot use them now.
  const Units left = of - std::min(of, job.held());
  return AsksPastGate(request) && request.units <= left && request.contiguous <= job.terms.piece;
}

}  // namespace

bool WaitsForOwnFences(const Ledger& ledger, const Request& request) {
  const Job* job = ledger.Find(request.job);
  if (job == nullptr || job->unfenced == 0) return false;
  const uint64_t wanted = uint64_t{job->leased} + request.units;
  return wanted <= job->limit && wanted + job->unfenced > job->limit;
}

bool Promised(const Ledger& ledger, const Request& request) {
  const Job* job = ledger.Find(request.job);
  return job != nullptr && HasLeft(*job, request, job->terms.ahead());
}

bool InsideClaim(const Ledger& ledger, const Request& request) {
  const Job* job = ledger.Find(request.job);
  return job != nullptr && HasLeft(*job, request, job->terms.claim);
}

End FreeLane(const Ledger& ledger, JobId job) {
  int low = 0;
  int high = 0;
  for (const Job& other : ledger.jobs()) {
    if (other.id == job || !other.past_gate()) continue;
    ++(other.terms.end == End::kLow ? low : high);
  }
  return high < low ? End::kHigh : End::kLow;
}

uint64_t MayHold(const Ledger& ledger, JobId begins) {
  uint64_t most = 0;
  for (const Job& job : ledger.jobs()) {
    if (job.phase == Phase::kDying) {
      most += job.held();
    } else if (job.phase != Phase::kWaiting || job.id == begins) {
      most += job.limit;
    }
  }
  return most;
}

}  // namespace sluice::scheduler
