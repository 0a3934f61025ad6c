// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/limits.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler {
namespace {

Units Clamp(uint64_t units) {
  return static_cast<Units>(std::min<uint64_t>(units, std::numeric_limits<Units>::max()));
}

/// Requests of all living jobs but `a` and `b`.
uint64_t OtherRequests(const Ledger& ledger, JobId a, JobId b) {
  uint64_t sum = 0;
  for (const Job& job : ledger.jobs()) {
    if (job.id != a && job.id != b && job.phase != Phase::kDying) sum += job.request;
  }
  return sum;
}

}  // namespace

Units LeastLimit::units() const { return Clamp(uint64_t{pool} + outside); }

LeastLimit LeastLimitOf(const Job& job, Units needs, Units outside) {
  LeastLimit least{Clamp(job.needs()), outside, LeastLimit::Of::kHeld};
  const Units room = job.limit - std::min(job.limit, job.outside);
  const auto counts = [&least, room](Units units, LeastLimit::Of of) {
    if (std::min(units, room) <= least.pool) return;
    least.pool = std::min(units, room);
    least.of = of;
  };
  // Who was moved to host memory in its iteration goes on with the same claim.
  const bool inside = job.phase == Phase::kRunning ||
                      (job.phase == Phase::kEvicted && job.away_from == Phase::kRunning);
  if (inside) counts(job.terms.claim, LeastLimit::Of::kPromised);
  counts(needs, LeastLimit::Of::kNeeded);
  return least;
}

Status CheckLimit(const Ledger& ledger, const std::string& who, Units limit,
                  const LeastLimit& least) {
  if (limit >= least.units()) return Status();
  const char* const verb = least.of == LeastLimit::Of::kHeld       ? " holds "
                           : least.of == LeastLimit::Of::kPromised ? " was promised "
                                                                   : " needs ";
  std::string has = least.pool > 0 ? verb + ledger.Bytes(least.pool) : "";
  if (least.outside > 0) {
    has +=
        (has.empty() ? " has " : " and has ") + ledger.Bytes(least.outside) + " outside the pool";
  }
  return Status(StatusCode::kFailedPrecondition, "limit " + ledger.Bytes(limit) + ": " + who + has +
                                                     "; allowed: from " +
                                                     ledger.Bytes(least.units()));
}

Units WithTenth(Units units) {
  return Clamp(std::max<uint64_t>(1, (uint64_t{units} * 11 + 9) / 10));
}

Units WithClaimMargin(Units units, Units piece) {
  constexpr uint64_t kPart = 50;
  return Clamp(units + std::max<uint64_t>((units + kPart - 1) / kPart, piece));
}

void MakeRoom(Ledger* ledger, JobId job, Units request, const MayYield& may_yield) {
  const uint64_t pool = ledger->pool_units();
  std::vector<std::pair<JobId, Units>> lowered;
  for (const Job& other : ledger->jobs()) {
    if (other.id == job || other.phase == Phase::kDying || !may_yield(other.id)) continue;
    const uint64_t taken = OtherRequests(*ledger, job, other.id) + request;
    const uint64_t room = pool - std::min(pool, taken);
    if (other.limit > room && room >= std::max<Units>(1, other.request)) {
      lowered.emplace_back(other.id, static_cast<Units>(room));
    }
  }
  // A lower limit breaks no promise of I0; a refusal here only means that less room was made.
  for (const auto& [other, limit] : lowered) (void)ledger->SetLimit(other, limit).ok();
}

void SetRequest(Ledger* ledger, JobId job, Units request, const MayYield& may_yield) {
  MakeRoom(ledger, job, request, may_yield);
  const Job* known = ledger->Find(job);
  if (known == nullptr) return;
  uint64_t most = known->limit;
  for (const Job& other : ledger->jobs()) {
    if (other.id == job || other.phase == Phase::kDying) continue;
    const uint64_t taken = other.limit + OtherRequests(*ledger, job, other.id);
    most = std::min(most, ledger->pool_units() - std::min<uint64_t>(ledger->pool_units(), taken));
  }
  (void)ledger->SetRequest(job, static_cast<Units>(std::min<uint64_t>(request, most))).ok();
}

Units LargestClaim(const Ledger& ledger, JobId job) {
  uint64_t kept = 0;
  for (const Job& other : ledger.jobs()) {
    if (other.id == job) continue;
    if (other.phase == Phase::kDying && other.linger != Linger::kForGood) continue;
    const bool returns = other.phase == Phase::kRunning && other.terms.returns;
    kept += returns ? std::min(other.held(), TotalUnits(other.base)) : other.held();
  }
  return static_cast<Units>(ledger.pool_units() - std::min<uint64_t>(ledger.pool_units(), kept));
}

}  // namespace sluice::scheduler
