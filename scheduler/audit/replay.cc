// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/replay.h"

#include <algorithm>

#include "scheduler/audit/brute.h"

namespace sluice::scheduler::audit {

std::vector<AuditViolation> Replay::Apply(const Record& record) {
  complaints_.clear();
  lent_.clear();
  two_holders_ = false;
  if (record.event == EventKind::kRestore) {
    Restore(record);
    return complaints_;
  }
  // What belongs to the restored state of a job.
  restoring_ =
      restoring_ && (record.event == EventKind::kRelease || record.event == EventKind::kFenced ||
                     record.event == EventKind::kOutside || record.event == EventKind::kDeath);
  if (record.event == EventKind::kAdmit) {
    if (jobs_.count(record.job) > 0)
      Complain("schema", "job " + std::to_string(record.job) + " is admitted twice");
    ReplayJob job;
    job.request = record.request;
    job.limit = record.limit;
    jobs_[record.job] = job;
  } else if (record.event == EventKind::kPolicy) {
    // What holds of decisions holds whoever makes them.
  } else if (record.event == EventKind::kPool) {
    Complain("schema", "a second pool record");
  } else if (const auto at = jobs_.find(record.job); at != jobs_.end()) {
    OfJob(record, &at->second);
    // A job may wait, and be refused, before it is admitted; nothing else happens to it then.
  } else if (record.event != EventKind::kWait && record.event != EventKind::kDeny) {
    Complain("schema", std::string(EventName(record.event)) + " of job " +
                           std::to_string(record.job) + ", which was never admitted or is gone");
  }
  return complaints_;
}

void Replay::OfJob(const Record& record, ReplayJob* job) {
  const JobId id = record.job;
  switch (record.event) {
    case EventKind::kLimit:
      job->limit = record.limit;
      job->request = record.request;
      if (job->where == Where::kUnknownIteration) job->claim = std::min(job->claim, job->limit);
      break;
    case EventKind::kSettle:
      Expect(job->where == Where::kUnknownIteration, record, "without a profile");
      job->settled = true;
      job->limit = job->request = record.limit;
      job->claim = std::min(job->claim, job->limit);
      break;
    case EventKind::kQuiet:
    case EventKind::kBusy:
      Expect(job->past_gate(), record, "past its gate");
      job->quiet = record.event == EventKind::kQuiet;
      job->collective = record.collective;
      break;
    case EventKind::kGate:
      StandsStill(record, *job);
      if (record.gate == 0) Open(record, job);
      Grant(id, job, record.extents);
      break;
    case EventKind::kGrant:
      StandsStill(record, *job);
      Expect(job->past_gate(), record, "past its gate");
      job->claim = std::max(job->claim, record.claim);
      if (record.waives > job->claim)
        Complain("I5", "job " + std::to_string(id) + " waives more than its claim");
      job->waives = std::min(record.waives, job->claim);
      Reclaim(id, job, record.reclaim);
      Grant(id, job, record.extents);
      break;
    case EventKind::kClaim:
      Expect(job->past_gate(), record, "past its gate");
      if (job->where == Where::kIteration && record.claim < job->claim)
        Complain("I5", "the claim of job " + std::to_string(id) + " falls inside its iteration");
      job->claim = record.claim;
      job->waives = 0;
      break;
    case EventKind::kRelease:
      StandsStill(record, *job);
      Expect(job->past_gate() || job->where == Where::kTrough, record, "alive and admitted");
      ForEach(record.extents, [&](ReplayUnit& unit, Units at) {
        if (unit.cell != Cell::kLeased || unit.holder != id) {
          Complain("I1", "job " + std::to_string(id) + " releases unit " + std::to_string(at) +
                             ", which is not leased to it");
          return;
        }
        unit.cell = Cell::kUnfenced;
        unit.release = record.release;
        unit.lender = job->where == Where::kIteration ? id : kNoJob;
      });
      break;
    case EventKind::kFenced: {
      bool any = false;
      for (ReplayUnit& unit : units_) {
        if (unit.cell != Cell::kUnfenced || unit.holder != id || unit.release != record.release)
          continue;
        any = true;
        unit.cell = job->past_gate() ? Cell::kSpare : Cell::kFree;
        if (job->past_gate()) continue;
        unit.holder = kNoJob;
        --job->held;
      }
      if (!any)
        Complain("I1",
                 "job " + std::to_string(id) + " has no release " + std::to_string(record.release));
      break;
    }
    case EventKind::kReclaim:
      Reclaim(id, job, record.extents);
      break;
    case EventKind::kTrough:
      StandsStill(record, *job);
      Trough(id, job, record.drained);
      break;
    case EventKind::kOutside:
      job->outside = record.units;
      job->outside_bytes = record.bytes;
      break;
    case EventKind::kMismatch:
      Expect(job->where == Where::kIteration, record, "inside an iteration");
      job->where = Where::kUnknownIteration;
      job->returns = job->drained = job->settled = job->quiet = false;
      job->piece = record.piece;
      job->waives = 0;
      StopLending(id);
      break;
    case EventKind::kDeath:
      for (ReplayUnit& unit : units_) {
        if (unit.holder == id) unit.cell = Cell::kQuarantined;
      }
      StopLending(id);
      job->where = Where::kDead;
      break;
    case EventKind::kFree:
      Expect(job->where == Where::kDead, record, "dead");
      for (ReplayUnit& unit : units_) {
        if (unit.holder == id) unit = ReplayUnit{};
      }
      jobs_.erase(id);
      break;
    case EventKind::kLeave:
      Reclaim(id, job, record.extents);
      if (job->held > 0) Complain("I1", "job " + std::to_string(id) + " leaves and holds memory");
      // What it gave back last was no loan: it never wanted it again.
      StopLending(id);
      jobs_.erase(id);
      break;
    case EventKind::kEvict:
      Evict(record, job);
      break;
    case EventKind::kCopyOut:
      CopyOut(record, job);
      break;
    case EventKind::kCopyBack:
      CopyBack(record, job);
      break;
    case EventKind::kBringBack:
      BringBack(record, job);
      Grant(id, job, record.extents);
      break;
    case EventKind::kWait:
      // It asked for what it wants before it went.
      if (job->where == Where::kAway) break;
      job->wants = record.units;
      job->wants_run = record.contiguous;
      job->held_when_asked = job->held;
      break;
    case EventKind::kPool:
    case EventKind::kPolicy:
    case EventKind::kRestore:
    case EventKind::kAdmit:
    case EventKind::kBase:
    case EventKind::kDeny:
      break;
  }
}

/// A state that the log does not explain: believed, as far as it does not contradict itself.
void Replay::Restore(const Record& record) {
  const JobId id = record.job;
  if (!restoring_) Complain("schema", "job " + std::to_string(id) + " is restored in the middle");
  if (jobs_.count(id) > 0) Complain("schema", "job " + std::to_string(id) + " is restored twice");
  ReplayJob job;
  job.request = record.request;
  job.limit = record.limit;
  job.claim = record.claim;
  job.piece = record.piece == 0 ? 1 : record.piece;
  job.returns = record.returns;
  job.waives = std::min(record.waives, record.claim);
  job.drained = record.drained;
  job.settled = record.settled;
  if (record.text == PhaseName(Phase::kRunning)) job.where = Where::kIteration;
  if (record.text == PhaseName(Phase::kUnprofiled)) job.where = Where::kUnknownIteration;
  if (record.text == PhaseName(Phase::kParked)) job.where = Where::kTrough;
  const auto flags = [&](const Extents& extents, std::vector<bool>* into) {
    into->assign(units_.size(), false);
    ForEach(extents, [&](ReplayUnit&, Units at) { (*into)[at] = true; });
  };
  flags(record.base, &job.base);
  flags(record.last_trough, &job.last_trough);
  Grant(id, &job, record.extents);
  jobs_[id] = std::move(job);
}

void Replay::Expect(bool holds, const Record& record, const char* where) {
  if (holds) return;
  Complain("schema", std::string(EventName(record.event)) + " of job " +
                         std::to_string(record.job) + ", which is not " + where);
}

template <typename Change>
void Replay::ForEach(const Extents& extents, Change change) {
  for (const Extent& extent : extents) {
    if (uint64_t{extent.offset} + extent.length > units_.size() || extent.length == 0) {
      Complain("schema", "the extent [" + std::to_string(extent.offset) + ", +" +
                             std::to_string(extent.length) + ") does not lie in the pool");
      continue;
    }
    for (Units at = extent.offset; at < extent.end(); ++at) change(units_[at], at);
  }
}

void Replay::Open(const Record& record, ReplayJob* job) {
  const bool from_trough = job->where == Where::kTrough;
  Expect(from_trough || (job->where == Where::kWaiting && !record.profiled), record,
         "at its trough");
  Unknown(record, *job);
  job->settled = job->quiet = false;
  job->where = record.profiled ? Where::kIteration : Where::kUnknownIteration;
  job->claim = record.claim;
  job->waives = 0;
  job->piece = record.piece == 0 ? 1 : record.piece;
  job->returns = record.profiled && record.returns;
}

/// I5: who stays inside its claim is never evicted in its iteration. Units that it gave back and
/// that are its own still count, and so does the longest run that it promised to ask for: past that
/// it is stuck in its own fragments.
void Replay::Evict(const Record& record, ReplayJob* job) {
  const JobId id = record.job;
  job->away_from_trough = job->where == Where::kTrough;
  Expect(job->past_gate() || job->away_from_trough, record, "past its gate or at its trough");
  for (const ReplayUnit& unit : units_) {
    if (unit.holder == id && unit.cell == Cell::kUnfenced)
      Complain("I1", "job " + std::to_string(id) + " is evicted before its GPU work is done");
  }
  if (!job->away_from_trough && job->held_when_asked + job->wants <= job->claim - job->waives &&
      job->wants_run <= job->piece)
    Complain("I5", "job " + std::to_string(id) + " is evicted inside its claim");
  job->away.assign(units_.size(), false);
  ForEach(record.extents, [&](ReplayUnit& unit, Units at) {
    if (unit.cell != Cell::kLeased || unit.holder != id) {
      Complain("I1", "unit " + std::to_string(at) + " is evicted, which job " + std::to_string(id) +
                         " has not leased");
      return;
    }
    unit = ReplayUnit{};
    --job->held;
    job->away[at] = true;
  });
  for (ReplayUnit& unit : units_) {
    if (unit.holder != id || unit.cell != Cell::kSpare) continue;
    unit = ReplayUnit{};
    --job->held;
  }
  if (copies_told_ && job->copy != Copy::kLeaving)
    Complain("I1", "job " + std::to_string(id) + " is evicted and was not copied");
  if (job->copy == Copy::kLeaving) {
    Compare(record.extents, *job, "evicted");
    for (ReplayUnit& unit : units_) unit.leaves = unit.leaves == id ? kNoJob : unit.leaves;
    job->copy = Copy::kAway;
  }
  if (job->away_from_trough && job->held > 0)
    Complain("schema", "job " + std::to_string(id) + " is evicted at its trough but for " +
                           std::to_string(job->held) + " units");
  StopLending(id);
  job->where = Where::kAway;
}

void Replay::BringBack(const Record& record, ReplayJob* job) {
  Expect(job->where == Where::kAway, record, "evicted");
  std::vector<bool> missing = job->away;
  ForEach(record.extents, [&](ReplayUnit&, Units at) {
    if (at < missing.size()) missing[at] = false;
  });
  if (std::count(missing.begin(), missing.end(), true) > 0)
    Complain("I5", "job " + std::to_string(record.job) + " does not get back what it had");
  job->away.clear();
  if (job->copy == Copy::kAway) {
    Compare(record.extents, *job, "given back");
    job->copy = Copy::kReturning;
  }
  if (job->away_from_trough != (record.claim == 0))
    Complain("schema", "job " + std::to_string(record.job) + " comes back to where it was not");
  if (job->away_from_trough) {
    job->where = Where::kTrough;
    return;
  }
  job->where = record.profiled ? Where::kIteration : Where::kUnknownIteration;
  job->claim = record.claim;
  job->waives = 0;
  job->piece = record.piece == 0 ? 1 : record.piece;
  job->returns = record.profiled && record.returns;
}

/// From here on these bytes are read: their unit is this job's until it is evicted.
void Replay::CopyOut(const Record& record, ReplayJob* job) {
  const JobId id = record.job;
  copies_told_ = true;
  if (record.extents.empty()) {
    Expect(job->copy == Copy::kLeaving, record, "being copied");
    ForgetCopy(id, job);
    return;
  }
  Expect(job->copy == Copy::kNone && (job->past_gate() || job->where == Where::kTrough), record,
         "where it could leave from");
  job->copy = Copy::kLeaving;
  job->copied.assign(units_.size(), false);
  ForEach(record.extents, [&](ReplayUnit& unit, Units at) {
    if (unit.cell != Cell::kLeased || unit.holder != id)
      Complain("I1", "unit " + std::to_string(at) + " is copied, which job " + std::to_string(id) +
                         " has not leased");
    job->copied[at] = true;
    unit.leaves = id;
  });
}

/// These bytes were overwritten.
void Replay::CopyBack(const Record& record, ReplayJob* job) {
  const JobId id = record.job;
  Expect(job->copy == Copy::kReturning, record, "on its way back");
  ForEach(record.extents, [&](ReplayUnit& unit, Units at) {
    if (unit.cell != Cell::kLeased || unit.holder != id)
      Complain(
          "I1",
          "unit " + std::to_string(at) + " is overwritten with bytes of job " + std::to_string(id) +
              (unit.holder == kNoJob ? ", which does not hold it"
                                     : " while job " + std::to_string(unit.holder) + " holds it"));
  });
  if (job->copy == Copy::kReturning) Compare(record.extents, *job, "copied back");
  ForgetCopy(id, job);
}

void Replay::ForgetCopy(JobId id, ReplayJob* job) {
  job->copy = Copy::kNone;
  job->copied.clear();
  for (ReplayUnit& unit : units_) unit.leaves = unit.leaves == id ? kNoJob : unit.leaves;
}

/// The very units that were copied out.
void Replay::Compare(const Extents& extents, const ReplayJob& job, const std::string& what) {
  std::vector<bool> now(units_.size(), false);
  ForEach(extents, [&](ReplayUnit&, Units at) { now[at] = true; });
  for (size_t at = 0; at < units_.size(); ++at) {
    if (now[at] == job.copied[at]) continue;
    Complain("I1", "unit " + std::to_string(at) +
                       (now[at] ? " is " + what + " and was not copied out"
                                : " was copied out and is not " + what));
    return;
  }
}

/// Nothing is granted to a job whose memory is moved, and it gives nothing back.
void Replay::StandsStill(const Record& record, const ReplayJob& job) {
  if (job.copy == Copy::kNone) return;
  Complain("I5", std::string(EventName(record.event)) + " of job " + std::to_string(record.job) +
                     " while its memory is moved");
}

bool Replay::RoomForAll(JobId asks) const {
  uint64_t most = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.where == Where::kDead) {
      most += job.held;
    } else if (job.where != Where::kWaiting || id == asks) {
      most += job.limit;
    }
  }
  return most <= units_.size();
}

/// I7 binds the decision: a job that loses its profile inside its iteration leaves the others in
/// theirs, and that is nobody's fault.
void Replay::Unknown(const Record& record, const ReplayJob& job) {
  if (!record.profiled && record.claim != job.limit) {
    Complain("I7", "job " + std::to_string(record.job) +
                       " begins without a profile and does not claim its limit");
  }
  for (const auto& [id, other] : jobs_) {
    if (id == record.job || other.where != Where::kUnknownIteration || other.settled) continue;
    // Nothing is measured, and what passes comes back.
    if (other.quiet && record.profiled && record.returns) continue;
    // Somebody may wait for it on another GPU; it takes nothing that anybody may come to hold.
    if ((record.collective || (other.quiet && other.collective && !record.profiled)) &&
        RoomForAll(record.job))
      continue;
    Complain("I7", "job " + std::to_string(record.job) + " passes its gate while job " +
                       std::to_string(id) + " is measured");
  }
}

void Replay::Grant(JobId id, ReplayJob* job, const Extents& extents) {
  ForEach(extents, [&](ReplayUnit& unit, Units at) {
    const bool own_spare = unit.cell == Cell::kSpare && unit.holder == id;
    if (unit.cell != Cell::kFree && !own_spare) {
      Complain("I1", "unit " + std::to_string(at) + " is granted to job " + std::to_string(id) +
                         " while job " + std::to_string(unit.holder) + " holds it");
      // Told once, then believed: otherwise one double grant would break every later line of the
      // log.
      two_holders_ = true;
      if (const auto other = jobs_.find(unit.holder); other != jobs_.end()) --other->second.held;
    }
    if (unit.leaves != kNoJob && unit.leaves != id)
      Complain("I1", "unit " + std::to_string(at) + " is granted to job " + std::to_string(id) +
                         " while it is copied for job " + std::to_string(unit.leaves));
    // What is kept beyond a budget borrows nothing.
    if (unit.lender != kNoJob && unit.lender != id && id != kBeyondBudget) ++lent_[unit.lender];
    if (!own_spare) ++job->held;
    unit = ReplayUnit{Cell::kLeased, id, 0, kNoJob, unit.leaves};
  });
}

void Replay::Reclaim(JobId id, ReplayJob* job, const Extents& extents) {
  ForEach(extents, [&](ReplayUnit& unit, Units at) {
    if (unit.cell != Cell::kSpare || unit.holder != id) {
      Complain("I1", "unit " + std::to_string(at) + " is taken back from job " +
                         std::to_string(id) +
                         ", which has not given it up or whose GPU work is not done");
      return;
    }
    // The lender stays: the unit was given up within the iteration, whenever it is passed on.
    unit.cell = Cell::kFree;
    unit.holder = kNoJob;
    --job->held;
  });
}

void Replay::Trough(JobId id, ReplayJob* job, bool drained) {
  if (!job->past_gate())
    Complain("schema",
             "job " + std::to_string(id) + " is at its trough, but was not past its gate");
  if (job->where == Where::kIteration && job->returns && !drained) {
    for (size_t at = 0; at < units_.size(); ++at) {
      const bool in_base = at < job->base.size() && job->base[at];
      if (units_[at].holder != id || units_[at].cell != Cell::kLeased || in_base) continue;
      Complain("I5", "job " + std::to_string(id) +
                         " was to give back all but its base and kept unit " + std::to_string(at));
      break;
    }
  }
  std::vector<bool> now(units_.size(), false);
  for (size_t at = 0; at < units_.size(); ++at) {
    ReplayUnit& unit = units_[at];
    if (unit.holder != id) continue;
    if (unit.cell == Cell::kSpare) {
      unit.cell = Cell::kFree;
      unit.holder = kNoJob;
      --job->held;
      continue;
    }
    if (unit.cell == Cell::kUnfenced && drained) {
      Complain("I1", "job " + std::to_string(id) + " is drained, but its release " +
                         std::to_string(unit.release) + " is not fenced");
    }
    now[at] = true;
  }
  StopLending(id);
  job->where = Where::kTrough;
  job->settled = job->quiet = false;
  job->drained = drained;
  if (!drained) return;
  job->base = now;
  for (size_t at = 0; at < job->last_trough.size(); ++at) {
    if (job->last_trough[at]) job->base[at] = true;
  }
  job->last_trough = std::move(now);
}

void Replay::StopLending(JobId id) {
  for (ReplayUnit& unit : units_) {
    if (unit.lender == id) unit.lender = kNoJob;
  }
}

Units Replay::free() const {
  return static_cast<Units>(std::count_if(units_.begin(), units_.end(), [](const ReplayUnit& unit) {
    return unit.cell == Cell::kFree;
  }));
}

Units Replay::Count(JobId job, Cell cell) const {
  return static_cast<Units>(std::count_if(
      units_.begin(), units_.end(),
      [&](const ReplayUnit& unit) { return unit.holder == job && unit.cell == cell; }));
}

bool Replay::AdmissionHolds() const {
  uint64_t requests = 0;
  for (const auto& [id, job] : jobs_) requests += job.where == Where::kDead ? 0 : job.request;
  return requests <= units_.size() &&
         std::all_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
           const ReplayJob& job = entry.second;
           return job.where == Where::kDead || job.limit + requests - job.request <= units_.size();
         });
}

size_t Replay::PastGate() const {
  return static_cast<size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& entry) { return entry.second.past_gate(); }));
}

bool Replay::Safe(bool in_sums) const {
  // What a dead job holds comes back by itself, so it counts as free here; and so does what the GPU
  // of a job at its trough has not passed yet.
  std::vector<bool> available(units_.size());
  for (size_t at = 0; at < units_.size(); ++at) {
    const auto holder = jobs_.find(units_[at].holder);
    available[at] =
        units_[at].holder == kNoJob ||
        (holder != jobs_.end() &&
         (holder->second.where == Where::kDead ||
          (holder->second.where == Where::kTrough && units_[at].cell == Cell::kUnfenced)));
  }
  std::vector<Party> parties;
  for (const auto& [id, job] : jobs_) {
    if (!job.past_gate()) continue;
    Party party;
    party.job = id;
    const Units ahead = job.claim - job.waives;
    party.need = ahead - std::min(ahead, job.held);
    party.piece = job.piece;
    party.returns = job.returns;
    party.gives_back.assign(units_.size(), false);
    party.may_keep.assign(units_.size(), false);
    for (size_t at = 0; at < units_.size(); ++at) {
      const bool of_base = at < job.base.size() && job.base[at];
      const bool held = units_[at].holder == id;
      party.gives_back[at] = held && !of_base;
      party.may_keep[at] = !held && of_base;
    }
    parties.push_back(std::move(party));
  }
  return SomeOrderCompletes(available, parties, in_sums);
}

}  // namespace sluice::scheduler::audit
