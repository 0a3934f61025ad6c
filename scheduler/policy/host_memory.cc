// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/host_memory.h"

#include <algorithm>

#include "scheduler/policy/operations.h"

namespace sluice::scheduler {

namespace {

bool SomebodyBegins(const std::vector<Request>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [](const Request& request) { return request.kind == RequestKind::kNewcomer; });
}

bool SomebodyIsMeasured(const Ledger& ledger) {
  return std::any_of(ledger.jobs().begin(), ledger.jobs().end(), [](const Job& job) {
    return job.phase == Phase::kUnprofiled && !job.settled;
  });
}

/// Who stands still in its iteration takes up no room of those who go on.
bool IsResident(const Job& job) {
  return job.phase == Phase::kParked || (job.phase == Phase::kRunning && !job.quiet);
}

uint32_t Residents(const Ledger& ledger) {
  return static_cast<uint32_t>(
      std::count_if(ledger.jobs().begin(), ledger.jobs().end(), IsResident));
}

/// What has no profile may keep for good what it takes, wherever that lies. Who takes part in
/// collective operations waits for other GPUs, and holds a place there as long as somebody is kept
/// from it here.
bool AllTakeTurns(const Ledger& ledger) {
  return std::all_of(ledger.jobs().begin(), ledger.jobs().end(), [](const Job& job) {
    if (job.collective) return false;
    return job.phase == Phase::kParked || job.phase == Phase::kRunning ||
           job.phase == Phase::kEvicted || job.phase == Phase::kDying || job.id == kBeyondBudget;
  });
}

bool CanLeave(const Ledger& ledger, const Request& request) {
  return request.kind == RequestKind::kGate0 && request.insurance == Insurance::kEvictable &&
         !ledger.Find(request.job)->collective;
}

/// Who is in the place of one that has to come back: it keeps other memory at its trough than it
/// did, or that one got memory in its place while it was away itself.
std::optional<size_t> InTheWay(const Ledger& ledger, const std::vector<Request>& requests,
                               const Request& wanted) {
  const Extents& place = ledger.Find(wanted.job)->away;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!CanLeave(ledger, requests[i])) continue;
    const bool first =
        wanted.kind == RequestKind::kBringBack || !ledger.Find(requests[i].job)->fresh;
    if (first && !Intersect(ledger.map().Held(requests[i].job), place).empty()) return i;
  }
  return std::nullopt;
}

}  // namespace

bool SomebodyMoves(const std::vector<Request>& requests) {
  return std::any_of(requests.begin(), requests.end(), [](const Request& request) {
    return request.insurance == Insurance::kLeaving;
  });
}

bool Overdue(const Ledger& ledger, const Request& request, const std::vector<Request>& requests,
             const Config& config) {
  // A newcomer begins when everybody is back, and who lost its profile is measured beside all.
  if (request.kind == RequestKind::kSwapIn)
    return request.due || SomebodyBegins(requests) || SomebodyIsMeasured(ledger);
  return request.overtaken >= config.max_overtakes;
}

std::optional<size_t> WhoLeaves(const Ledger& ledger, const std::vector<Request>& requests,
                                const Config& config) {
  if (SomebodyMoves(requests)) return std::nullopt;  // it makes room, and that may be enough
  bool wanted = false;                               // by one whose slice has passed
  for (const Request& request : requests) {
    if (!ComesBack(request) || !Overdue(ledger, request, requests, config)) continue;
    if (const auto leaves = InTheWay(ledger, requests, request)) return leaves;
    wanted |= request.due;
  }
  const uint32_t residents = Residents(ledger);
  const bool full = residents > config.residents || (wanted && residents == config.residents);
  if (config.residents == 0 || !full || SomebodyBegins(requests) || !AllTakeTurns(ledger))
    return std::nullopt;
  std::vector<const Job*> there;
  for (const Job& job : ledger.jobs()) {
    if (IsResident(job) && !job.fresh && !job.stays) there.push_back(&job);
  }
  std::stable_sort(there.begin(), there.end(),
                   [](const Job* a, const Job* b) { return a->came_back < b->came_back; });
  for (const Job* job : there) {
    const auto asks = std::find_if(requests.begin(), requests.end(),
                                   [job](const Request& one) { return one.job == job->id; });
    // It is its turn to go, and it has to come to its trough first.
    if (job->phase == Phase::kRunning) return std::nullopt;
    if (asks == requests.end() || !CanLeave(ledger, *asks)) continue;
    if (!Overdue(ledger, *asks, requests, config))
      return static_cast<size_t>(asks - requests.begin());
  }
  return std::nullopt;
}

bool MayComeBack(const Ledger& ledger, const Request& request, const std::vector<Request>& requests,
                 const Config& config) {
  // One that has to go on with its iteration needs its place first.
  const Extents& place = ledger.Find(request.job)->away;
  for (const Request& other : requests) {
    if (other.kind == RequestKind::kBringBack &&
        !Intersect(ledger.Find(other.job)->away, place).empty())
      return false;
  }
  const bool room = config.residents == 0 || Residents(ledger) < config.residents;
  return room || Overdue(ledger, request, requests, config);
}

bool WorthEvicting(const Ledger& ledger, const Request& request) {
  if (request.insurance != Insurance::kEvictable) return false;
  const Job& job = *ledger.Find(request.job);
  uint64_t stays = 0;
  for (const Job& other : ledger.jobs()) {
    if (other.id == job.id) continue;
    const bool parked = other.phase == Phase::kParked;
    const bool gives = parked || (other.past_gate() && other.terms.returns);
    const uint64_t kept = other.held() - (gives ? TotalUnits(other.loose) : 0);
    // More than twice as much is no scatter.
    const bool gathers = parked && kept <= 2 * uint64_t{other.request};
    stays += gathers ? std::min<uint64_t>(kept, other.request) : kept;
  }
  // Spare units are not moved: they are the job's only where nobody else could use them.
  const bool moves = !Intersect(ledger.map().Held(job.id, UnitState::kLeased), job.loose).empty();
  return moves && stays + HeldAfter(job, request) <= ledger.pool_units();
}

}  // namespace sluice::scheduler
