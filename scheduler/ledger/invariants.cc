// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What holds of every ledger, in words that its operations do not share.
#include "scheduler/ledger/ledger.h"

namespace sluice::scheduler {

Status Ledger::CheckInvariants() const {
  auto broken = [](const std::string& text) { return Status(StatusCode::kInternal, text); };
  Units at = 0;
  for (const Span& span : map_.spans()) {
    if (span.offset != at || span.length == 0)
      return broken("I1: the map has a gap at " + std::to_string(at));
    if ((span.holder == kNoJob) != (span.state == UnitState::kFree)) {
      return broken("I1: a unit is free and held at once at " + std::to_string(at));
    }
    if (span.holder != kNoJob && Find(span.holder) == nullptr) {
      return broken("I1: an unknown job holds the unit " + std::to_string(at));
    }
    at = span.end();
  }
  if (at != map_.units()) return broken("I1: the map ends at " + std::to_string(at));
  uint64_t sum = free();
  if (map_.Held(kNoJob, UnitState::kFree) != map_.FreeRuns() || TotalUnits(map_.FreeRuns()) != sum)
    return broken("I1: the free runs do not match the map");
  uint64_t requests = 0;
  for (const Job& job : jobs_) {
    if (job.leased != map_.Count(job.id, UnitState::kLeased) ||
        job.unfenced != map_.Count(job.id, UnitState::kUnfenced) ||
        job.spare != map_.Count(job.id, UnitState::kSpare) ||
        job.quarantined != map_.Count(job.id, UnitState::kQuarantined)) {
      return broken("I1: the counters of " + job.Title() + " do not match the map");
    }
    sum += job.held();
    if (job.phase == Phase::kWaiting && job.held() > 0)
      return broken(job.Title() + " holds memory before it began");
    if (job.quarantined > 0 && job.phase != Phase::kDying)
      return broken(job.Title() + " lives, but is quarantined");
    if (job.phase == Phase::kDying && job.held() != job.quarantined)
      return broken(job.Title() + " is dead, but not quarantined");
    if (job.spare > 0 && !job.past_gate())
      return broken(job.Title() + " has spare units outside its iteration");
    if (job.past_gate() && job.held() > job.terms.claim)
      return broken(job.Title() + " is above its claim");
    if (job.past_gate() && job.terms.waived > job.terms.claim)
      return broken(job.Title() + " waives more than its claim");
    if (job.past_gate() && job.terms.claim > job.limit)
      return broken(job.Title() + " claims more than its limit");
    if (job.needs() + job.outside > job.limit && job.phase != Phase::kDying)
      return broken(job.Title() + " is above its limit");
    if ((job.phase == Phase::kEvicted) == job.away.empty())
      return broken(job.Title() + " is evicted and has nothing in host memory, or the reverse");
    if (job.away_from != Phase::kRunning && job.away_from != Phase::kUnprofiled &&
        job.away_from != Phase::kParked)
      return broken(job.Title() + " was " + PhaseName(job.away_from) + " when it was evicted");
    if (job.phase == Phase::kEvicted && (job.unfenced > 0 || !job.loose.empty()))
      return broken(job.Title() + " is evicted and holds more than its base");
    if (Merge(job.away) != job.away ||
        (!job.away.empty() && job.away.back().end() > map_.units()) ||
        !Intersect(job.away, map_.Held(job.id)).empty())
      return broken("what " + job.Title() + " has in host memory cannot come back");
    for (const Extents& base : {job.base, job.last_trough}) {
      if (Merge(base) != base || (!base.empty() && base.back().end() > map_.units()))
        return broken("the base of " + job.Title() + " is no sorted list of extents of the pool");
    }
    if (!Subtract(job.last_trough, job.base).empty())
      return broken("the last trough of " + job.Title() + " is not in its base");
    if (job.missing != Subtract(job.base, map_.Held(job.id)))
      return broken("what " + job.Title() + " misses of its base does not match the map");
    if (job.loose != Subtract(map_.Held(job.id), job.base))
      return broken("what " + job.Title() + " holds outside its base does not match the map");
    // What lies outside would never count as given back.
    if (job.phase == Phase::kParked && job.drained &&
        !Subtract(map_.Held(job.id), job.last_trough).empty())
      return broken(job.Title() + " is parked and drained, but holds more than its base");
    if (job.phase != Phase::kDying) requests += job.request;
  }
  if (sum != map_.units()) return broken("I1: held and free add up to " + std::to_string(sum));
  if (!rules_.check_admission) return Status();
  for (const Job& job : jobs_) {
    if (job.phase != Phase::kDying && job.limit + requests - job.request > map_.units()) {
      return broken("I0: the limit of " + job.Title() +
                    " does not fit beside the requests of the others");
    }
  }
  return Status();
}

}  // namespace sluice::scheduler
