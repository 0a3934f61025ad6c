// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "common/bytes.h"
#include "scheduler/ledger/limits.h"

namespace sluice::scheduler {

namespace {

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }
Status Precondition(const std::string& text) {
  return Status(StatusCode::kFailedPrecondition, text);
}
Status Exhausted(const std::string& text) { return Status(StatusCode::kResourceExhausted, text); }

constexpr std::initializer_list<Phase> kAlive = {Phase::kWaiting, Phase::kUnprofiled,
                                                 Phase::kParked, Phase::kRunning, Phase::kEvicted};

std::string Text(const Extent& extent) {
  return "[" + std::to_string(extent.offset) + ", +" + std::to_string(extent.length) + ")";
}

Units* Counter(Job* job, UnitState state) {
  switch (state) {
    case UnitState::kLeased:
      return &job->leased;
    case UnitState::kUnfenced:
      return &job->unfenced;
    case UnitState::kSpare:
      return &job->spare;
    case UnitState::kQuarantined:
      return &job->quarantined;
    case UnitState::kFree:
      break;
  }
  return nullptr;
}

}  // namespace

std::string Job::Title() const {
  if (id == kBeyondBudget) return "what is " + name;
  return "job " + std::to_string(id) + " '" + name + "'";
}

Ledger::Ledger(Units pool_units, uint64_t unit_bytes, Rules rules)
    : map_(pool_units), unit_bytes_(unit_bytes), rules_(rules) {}

const Job* Ledger::Find(JobId job) const {
  for (const Job& known : jobs_) {
    if (known.id == job) return &known;
  }
  return nullptr;
}

Job* Ledger::FindMutable(JobId job) { return const_cast<Job*>(Find(job)); }

Units Ledger::held(JobId job) const {
  const Job* known = Find(job);
  return known == nullptr ? 0 : known->held();
}

std::string Ledger::Bytes(Units units) const { return FormatBytes(unit_bytes_ * units); }

std::string Ledger::Holders(JobId except) const {
  std::vector<const Job*> holders;
  for (const Job& job : jobs_) {
    if (job.id != except && job.held() > 0) holders.push_back(&job);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Job* a, const Job* b) { return a->held() > b->held(); });
  std::string text;
  for (const Job* job : holders) {
    if (!text.empty()) text += ", ";
    text += job->Title() + " holds " + Bytes(job->held()) + " (limit " + Bytes(job->limit) +
            (job->phase == Phase::kDying ? ", its process ended" : "") +
            (job->linger != Linger::kNot ? ", a process that it started lives on" : "") + ")";
  }
  return text.empty() ? "no other job holds memory" : text;
}

Result<Job*> Ledger::Expect(JobId job, std::initializer_list<Phase> phases, const char* operation) {
  Job* known = FindMutable(job);
  if (known == nullptr) {
    return Status(StatusCode::kNotFound,
                  std::string(operation) + ": there is no job " + std::to_string(job));
  }
  for (const Phase phase : phases) {
    if (known->phase == phase) return known;
  }
  return Precondition(std::string(operation) + ": " + known->Title() + " is " +
                      PhaseName(known->phase));
}

Units Ledger::LargestLimit(JobId job, Units request) const {
  const uint64_t pool = map_.units();
  uint64_t requests = request;
  for (const Job& other : jobs_) {
    if (other.id != job && other.phase != Phase::kDying) requests += other.request;
  }
  // I0 has one line per job. Those of the others bound this job's request, which is given: it fits
  // or not. Only its own line bounds its limit.
  for (const Job& other : jobs_) {
    if (other.id == job || other.phase == Phase::kDying) continue;
    if (other.limit + requests - other.request > pool) return 0;
  }
  return requests > pool ? 0 : static_cast<Units>(pool - (requests - request));
}

Status Ledger::CheckAdmission(JobId job, const std::string& who, Units request, Units limit) const {
  if (limit == 0) return Invalid(who + ": a limit of 0 allows no memory at all");
  if (request > limit) {
    return Invalid(who + ": its request " + Bytes(request) + " is above its limit " + Bytes(limit));
  }
  if (!rules_.check_admission) return Status();
  const std::string pool = "the pool of " + Bytes(map_.units());
  uint64_t others = 0;
  std::string names;
  for (const Job& other : jobs_) {
    // What a dying job holds comes back by itself, and nobody promised it anything.
    if (other.id == job || other.phase == Phase::kDying) continue;
    others += other.request;
    names += (names.empty() ? "" : ", ") + other.Title() + " requests " + Bytes(other.request) +
             " (limit " + Bytes(other.limit) + ", holds " + Bytes(other.held()) + ")";
  }
  if (others + limit > map_.units()) {
    return Exhausted(who + ": its limit " + Bytes(limit) +
                     " and the requests of the others do not fit in " + pool +
                     (names.empty() ? "" : ": " + names));
  }
  for (const Job& other : jobs_) {
    if (other.id == job || other.phase == Phase::kDying) continue;
    if (other.limit + others - other.request + request > map_.units()) {
      return Exhausted(who + ": its request " + Bytes(request) +
                       " does not fit beside the limit of " + other.Title() + " in " + pool + ": " +
                       names);
    }
  }
  return Status();
}

Status Ledger::Admit(JobId job, std::string name, Units request, Units limit) {
  if (job == kNoJob) return Invalid("admit: job 0 means nobody");
  if (Find(job) != nullptr) {
    return Precondition("admit: job " + std::to_string(job) + " is known already");
  }
  Job fresh;
  fresh.id = job;
  fresh.name = std::move(name);
  fresh.request = request;
  fresh.limit = limit;
  const Status status = CheckAdmission(job, fresh.Title(), request, limit);
  if (!status.ok()) return status;
  const auto at =
      std::find_if(jobs_.begin(), jobs_.end(), [job](const Job& known) { return known.id > job; });
  jobs_.insert(at, std::move(fresh));
  return Status();
}

Status Ledger::SetLimit(JobId job, Units limit) {
  auto known = Expect(job, kAlive, "limit");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  Status status = CheckLimit(*this, j->Title(), limit, LeastLimitOf(*j, 0, j->outside));
  if (status.ok()) status = CheckAdmission(job, j->Title(), j->request, limit);
  if (!status.ok()) return status;
  j->limit = limit;
  // A profiled job relies on its claim until its trough. The claim of one without a profile is its
  // limit by another name and falls with it.
  const Phase at = j->phase == Phase::kEvicted ? j->away_from : j->phase;
  if (at == Phase::kUnprofiled) j->terms.claim = std::min(j->terms.claim, limit);
  return Status();
}

Status Ledger::SetRequest(JobId job, Units request) {
  auto known = Expect(job, kAlive, "request");
  if (!known.ok()) return known.status();
  const Status status = CheckAdmission(job, (*known)->Title(), request, (*known)->limit);
  if (!status.ok()) return status;
  (*known)->request = request;
  return Status();
}

Status Ledger::SetOutside(JobId job, Units outside) {
  auto known = Expect(job, kAlive, "outside");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (outside > j->outside && j->needs() + outside > j->limit) {
    return Exhausted(j->Title() + " would have " + Bytes(outside) + " outside the pool, holds " +
                     Bytes(j->held()) + " of it, and its limit is " + Bytes(j->limit));
  }
  j->outside = outside;
  return Status();
}

Status Ledger::StartUnprofiled(JobId job) {
  auto known = Expect(job, {Phase::kWaiting, Phase::kParked}, "start");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  j->phase = Phase::kUnprofiled;
  j->settled = false;
  j->quiet = false;
  j->drained = false;
  j->terms = GateTerms{j->limit, j->unknown_piece(), false, End::kLow};
  return Status();
}

Status Ledger::Settle(JobId job, Units limit) {
  auto known = Expect(job, {Phase::kUnprofiled}, "settle");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (limit < j->held() + j->outside) {
    return Precondition("settle: " + j->Title() + " holds " + Bytes(j->held()) + ", a limit of " +
                        Bytes(limit) + " is below that");
  }
  // It gives nothing back, so whoever comes later has to fit beside all that it may hold.
  const Status status = CheckAdmission(job, j->Title(), limit, limit);
  if (!status.ok()) return status;
  j->limit = limit;
  j->request = limit;
  j->terms.claim = std::min(j->terms.claim, limit);
  j->settled = true;
  return Status();
}

Status Ledger::SetCollective(JobId job) {
  auto known = Expect(
      job, {Phase::kWaiting, Phase::kUnprofiled, Phase::kParked, Phase::kRunning, Phase::kEvicted},
      "collective");
  if (!known.ok()) return known.status();
  (*known)->collective = true;
  return Status();
}

Status Ledger::SetStays(JobId job, bool stays) {
  auto known = Expect(job, {Phase::kParked}, "stays");
  if (!known.ok()) return known.status();
  (*known)->stays = stays;
  return Status();
}

Status Ledger::SetStitches(JobId job, bool stitches) {
  auto known = Expect(job, {Phase::kWaiting}, "stitches");
  if (!known.ok()) return known.status();
  (*known)->stitches = stitches;
  return Status();
}

Status Ledger::SetQuiet(JobId job, bool quiet) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kRunning}, "quiet");
  if (!known.ok()) return known.status();
  (*known)->quiet = quiet;
  return Status();
}

Status Ledger::OpenGate(JobId job, const GateTerms& terms) {
  auto known = Expect(job, {Phase::kParked}, "gate");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (terms.claim < j->held() || terms.claim > j->limit) {
    return Invalid("gate: " + j->Title() + " claims " + Bytes(terms.claim) +
                   "; allowed: from what it holds, " + Bytes(j->held()) + ", to its limit, " +
                   Bytes(j->limit));
  }
  if (terms.piece == 0) return Invalid("gate: " + j->Title() + ": a piece of 0 units");
  if (terms.waived != 0) return Invalid("gate: " + j->Title() + ": a claim opens whole");
  j->phase = Phase::kRunning;
  j->quiet = false;
  j->fresh = false;
  j->terms = terms;
  return Status();
}

Status Ledger::RaiseClaim(JobId job, Units claim) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kRunning}, "claim");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (claim < j->terms.claim || claim > j->limit) {
    return Invalid("claim: " + j->Title() + " asks for " + Bytes(claim) +
                   "; allowed: from its claim, " + Bytes(j->terms.claim) + ", to its limit, " +
                   Bytes(j->limit));
  }
  j->terms.claim = claim;
  j->terms.waived = 0;
  return Status();
}

Status Ledger::Waive(JobId job, Units units) {
  auto known = Expect(job, {Phase::kRunning}, "waive");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (units > j->terms.claim) {
    return Invalid("waive: " + j->Title() + " waives " + Bytes(units) +
                   "; allowed: up to its claim, " + Bytes(j->terms.claim));
  }
  j->terms.waived = units;
  return Status();
}

Status Ledger::LoseProfile(JobId job) {
  auto known = Expect(job, {Phase::kRunning}, "mismatch");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  // The claim stays: it was promised, and I3 with it. But nothing it will ask for is known any
  // more, and nothing says when it comes back to a trough.
  j->phase = Phase::kUnprofiled;
  j->terms.waived = 0;
  j->terms.returns = false;
  j->terms.piece = j->unknown_piece();
  j->settled = false;
  j->quiet = false;
  j->drained = false;
  return Status();
}

Status Ledger::ReachTrough(JobId job, bool drained) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kRunning}, "trough");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  if (drained && j->unfenced > 0) {
    return Precondition("trough: " + j->Title() + " says it is drained, but " + Bytes(j->unfenced) +
                        " of its releases are not fenced");
  }
  if (!drained && j->phase == Phase::kRunning && j->terms.returns &&
      !Subtract(map_.Held(job, UnitState::kLeased), j->base).empty()) {
    return Precondition("trough: " + j->Title() +
                        " was to give back all but its base, but is not drained and has more");
  }
  // Parked, it is promised nothing, so no run has to be kept for it.
  Move(j, map_.Held(job, UnitState::kSpare), UnitState::kFree, 0);
  j->phase = Phase::kParked;
  j->settled = false;
  j->quiet = false;
  j->drained = drained;
  if (drained) {
    Extents now = map_.Held(job);
    j->base = Union(j->last_trough, now);
    j->loose.clear();
    j->missing = Subtract(j->base, now);
    j->last_trough = std::move(now);
  }
  return Status();
}

Status Ledger::Evict(JobId job) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kParked, Phase::kRunning}, "evict");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  const bool parked = j->phase == Phase::kParked;
  if (j->unfenced > 0) {
    return Precondition("evict: " + j->Title() + " still computes: " + Bytes(j->unfenced) +
                        " of its releases are not fenced");
  }
  Extents away = map_.Held(job, UnitState::kLeased);
  if (!parked) away = Intersect(away, j->loose);
  if (away.empty()) {
    return Precondition("evict: " + j->Title() + " has nothing" +
                        (parked ? "" : " beside its base"));
  }
  Move(j, map_.Held(job, UnitState::kSpare), UnitState::kFree, 0);
  Move(j, away, UnitState::kFree, 0);
  j->away = std::move(away);
  j->away_from = j->phase;
  j->phase = Phase::kEvicted;
  j->settled = false;
  j->quiet = false;
  return Status();
}

Status Ledger::BringBack(JobId job, const GateTerms& terms) {
  auto known = Expect(job, {Phase::kEvicted}, "bring back");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  const bool parked = j->away_from == Phase::kParked;
  if (!parked && (terms.claim < j->needs() || terms.claim > j->limit)) {
    return Invalid("bring back: " + j->Title() + " claims " + Bytes(terms.claim) +
                   "; allowed: from what it had, " + Bytes(static_cast<Units>(j->needs())) +
                   ", to its limit, " + Bytes(j->limit));
  }
  if (!parked && terms.piece == 0)
    return Invalid("bring back: " + j->Title() + ": a piece of 0 units");
  const Status status = CheckExtents(j->away, UnitState::kFree, *j, "bring back");
  if (!status.ok()) return status;
  j->phase = std::exchange(j->away_from, Phase::kRunning);
  if (!parked) j->terms = terms;
  if (parked) {
    for (const Job& other : jobs_) j->came_back = std::max(j->came_back, other.came_back + 1);
    j->fresh = true;
  }
  Move(j, std::exchange(j->away, {}), UnitState::kLeased, 0);
  return Status();
}

Status Ledger::CheckExtents(const Extents& extents, UnitState state, const Job& job,
                            const char* operation) const {
  const JobId holder = state == UnitState::kFree ? kNoJob : job.id;
  uint64_t sum = 0;
  for (const Extent& extent : extents) {
    if (!map_.All(extent, state, holder)) {
      return Invalid(std::string(operation) + ": " + job.Title() + ": not all of " + Text(extent) +
                     " is " + UnitStateName(state) + (holder == kNoJob ? "" : " and its own"));
    }
    sum += extent.length;
  }
  if (sum != TotalUnits(Merge(extents))) {
    return Invalid(std::string(operation) + ": " + job.Title() + ": the extents overlap");
  }
  return Status();
}

void Ledger::Move(Job* job, const Extents& extents, UnitState to, ReleaseId release) {
  const Extents moved = Merge(extents);
  for (const Extent& extent : moved) {
    for (auto span = map_.At(extent.offset);
         span != map_.spans().end() && span->offset < extent.end(); ++span) {
      // Free units in the extent belong to nobody.
      if (span->holder != job->id) continue;
      *Counter(job, span->state) -=
          std::min(span->end(), extent.end()) - std::max(span->offset, extent.offset);
    }
  }
  map_.Set(moved, to, to == UnitState::kFree ? kNoJob : job->id, release);
  if (Units* counter = Counter(job, to)) *counter += TotalUnits(moved);
  // All at once: one by one, each costs a walk over all that the job holds.
  if (to == UnitState::kFree) {
    job->loose = Subtract(job->loose, moved);
    const Extents of_base = Intersect(moved, job->base);
    if (!of_base.empty()) job->missing = Union(job->missing, of_base);
  } else {
    job->loose = Union(job->loose, Subtract(moved, job->base));
    if (!job->missing.empty()) job->missing = Subtract(job->missing, moved);
  }
  job->peak = std::max(job->peak, job->held());
}

Status Ledger::Grant(JobId job, const Extents& extents) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kRunning}, "grant");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  // Its own spare units change only their state: they count as held already, and the claim is not
  // asked again.
  const Extents own = Intersect(Merge(extents), map_.Held(job, UnitState::kSpare));
  const Extents fresh = Subtract(Merge(extents), own);
  if (TotalUnits(own) + TotalUnits(fresh) != TotalUnits(extents)) {
    return Invalid("grant: " + j->Title() + ": the extents overlap");
  }
  const Status status = CheckExtents(fresh, UnitState::kFree, *j, "grant");
  if (!status.ok()) return status;
  if (j->held() + TotalUnits(fresh) > j->terms.claim) {
    return Exhausted("grant: " + j->Title() + " would hold " +
                     Bytes(j->held() + TotalUnits(fresh)) + ", its claim is " +
                     Bytes(j->terms.claim));
  }
  if (j->held() + TotalUnits(fresh) + j->outside > j->limit) {
    return Exhausted("grant: " + j->Title() + " would hold " +
                     Bytes(j->held() + TotalUnits(fresh)) + " and has " + Bytes(j->outside) +
                     " outside the pool, its limit is " + Bytes(j->limit));
  }
  Move(j, own, UnitState::kLeased, 0);
  Move(j, fresh, UnitState::kLeased, 0);
  return Status();
}

Status Ledger::Release(JobId job, const Extents& extents, ReleaseId release) {
  // Parked too: a job that came to its trough with all it had may still give some back there.
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kParked, Phase::kRunning}, "release");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  for (const Span& span : map_.spans()) {
    if (span.holder == job && span.state == UnitState::kUnfenced && span.release == release) {
      return Invalid("release: " + j->Title() + ": release " + std::to_string(release) +
                     " is not fenced yet, its number is taken");
    }
  }
  const Status status = CheckExtents(extents, UnitState::kLeased, *j, "release");
  if (!status.ok()) return status;
  Move(j, Merge(extents), rules_.count_unfenced ? UnitState::kUnfenced : UnitState::kFree, release);
  return Status();
}

Status Ledger::Fenced(JobId job, ReleaseId release) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kParked, Phase::kRunning}, "fenced");
  if (!known.ok()) return known.status();
  Job* const j = *known;
  Extents done;
  for (const Span& span : map_.spans()) {
    if (span.holder == job && span.state == UnitState::kUnfenced && span.release == release) {
      done.push_back({span.offset, span.length});
    }
  }
  if (done.empty() && rules_.count_unfenced) {
    return Status(StatusCode::kNotFound,
                  "fenced: " + j->Title() + " has no release " + std::to_string(release));
  }
  // Past its gate the job was promised runs, and a hole in what it holds makes none longer: only
  // the policy can say whether freeing these leaves I3 true.
  const bool spare = j->past_gate() && rules_.keep_spare;
  Move(j, done, spare ? UnitState::kSpare : UnitState::kFree, 0);
  return Status();
}

Status Ledger::Reclaim(JobId job, const Extents& extents) {
  auto known = Expect(job, {Phase::kUnprofiled, Phase::kParked, Phase::kRunning}, "reclaim");
  if (!known.ok()) return known.status();
  const Status status = CheckExtents(extents, UnitState::kSpare, **known, "reclaim");
  if (!status.ok()) return status;
  Move(*known, extents, UnitState::kFree, 0);
  return Status();
}

Status Ledger::Die(JobId job) {
  auto known = Expect(job, kAlive, "death");
  if (!known.ok()) return known.status();
  Move(*known, map_.Held(job), UnitState::kQuarantined, 0);
  (*known)->phase = Phase::kDying;
  (*known)->away.clear();
  (*known)->settled = false;
  (*known)->quiet = false;
  return Status();
}

Status Ledger::SetLinger(JobId job, Linger linger) {
  auto known = Expect(job, {Phase::kDying}, "linger");
  if (!known.ok()) return known.status();
  (*known)->linger = linger;
  return Status();
}

Status Ledger::LastHolderGone(JobId job) {
  auto known = Expect(job, {Phase::kDying}, "free");
  if (!known.ok()) return known.status();
  Move(*known, map_.Held(job), UnitState::kFree, 0);
  Remove(job);
  return Status();
}

// Apart from Die: it holds nothing that the GPU may still use, so nobody has to wait for a last
// holder. Spare units become free in the same step: freed one step before, they could leave a job
// that wants nothing any more without the run it was promised.
Status Ledger::Leave(JobId job) {
  auto known = Expect(job, kAlive, "leave");
  if (!known.ok()) return known.status();
  if (const Units used = (*known)->held() - (*known)->spare; used > 0) {
    return Precondition("leave: " + (*known)->Title() + " still holds " + Bytes(used));
  }
  Move(*known, map_.Held(job), UnitState::kFree, 0);
  Remove(job);
  return Status();
}

void Ledger::Remove(JobId job) {
  std::erase_if(jobs_, [job](const Job& known) { return known.id == job; });
}

}  // namespace sluice::scheduler
