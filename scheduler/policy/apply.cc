// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "scheduler/policy/operations.h"
#include "scheduler/policy/policies.h"
#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

namespace {

bool Begins(const Request& request) {
  return request.kind == RequestKind::kNewcomer || request.kind == RequestKind::kGate0;
}

RefusalReason ReasonFor(DenyCode code) {
  switch (code) {
    case DenyCode::kOverLimit:
      return RefusalReason::kOverLimit;
    case DenyCode::kExhausted:
      return RefusalReason::kExhausted;
    case DenyCode::kRefused:
      break;
  }
  return RefusalReason::kRefused;
}

/// Who keeps all others from beginning, whatever memory there is.
const Job* HoldsUp(const Ledger& ledger, const Job& job, WaitReason* reason) {
  for (const Job& other : ledger.jobs()) {
    if (other.id == job.id) continue;
    const bool measured = other.phase == Phase::kUnprofiled && !other.settled;
    const bool stands = other.phase == Phase::kRunning && other.quiet;
    if (!measured && !stands) continue;
    *reason = measured ? WaitReason::kMeasurement : WaitReason::kStandstill;
    return &other;
  }
  return nullptr;
}

/// Whether units in this number, with a run of that length, lie free.
WaitReason Lacks(const Ledger& ledger, const Job& job, uint64_t units, Units run) {
  if (uint64_t{ledger.free()} + job.spare < units) return WaitReason::kMemory;
  const Extents& runs = ledger.map().FreeRuns();
  const bool fits = std::any_of(runs.begin(), runs.end(),
                                [run](const Extent& free) { return free.length >= run; });
  // There and free, and others were promised it.
  return fits ? WaitReason::kMemory : WaitReason::kPlace;
}

}  // namespace

Status MakeOperations(const Decision& decision, const std::vector<Request>& requests,
                      Ledger* ledger) {
  if (decision.kind == Decision::Kind::kDeny || decision.kind == Decision::Kind::kEvict) {
    return Status();
  }
  Status status;
  // First: the claim may have no room for the granted units beside the spare ones.
  if (!decision.reclaim.empty()) status = ledger->Reclaim(decision.job, decision.reclaim);
  if (!status.ok() || decision.kind == Decision::Kind::kReclaim) return status;
  const RequestKind kind = requests[decision.request].kind;
  if (kind == RequestKind::kNewcomer) status = ledger->StartUnprofiled(decision.job);
  if (kind == RequestKind::kGate0) status = ledger->OpenGate(decision.job, decision.terms);
  if (ComesBack(requests[decision.request]))
    status = ledger->BringBack(decision.job, decision.terms);
  if (status.ok() && decision.raises_claim) {
    status = ledger->RaiseClaim(decision.job, decision.terms.claim);
  }
  if (status.ok() && !decision.extents.empty()) {
    status = ledger->Grant(decision.job, decision.extents);
  }
  const Job& after = *ledger->Find(decision.job);
  if (status.ok() && after.past_gate() && after.terms.waived != decision.terms.waived) {
    status = ledger->Waive(decision.job, decision.terms.waived);
  }
  return status;
}

std::optional<Change> ChangeOf(const Decision& decision, const std::vector<Request>& requests,
                               const Ledger& ledger) {
  const Job& job = *ledger.Find(decision.job);
  Change change;
  change.job = job.id;
  change.terms = job.terms;
  change.returns = job.phase == Phase::kRunning && job.terms.returns;
  change.frees = decision.reclaim;
  if (decision.kind == Decision::Kind::kReclaim) return change;
  const RequestKind kind = requests[decision.request].kind;
  if (kind == RequestKind::kNewcomer || kind == RequestKind::kGate0) {
    change.terms = decision.terms;
    change.returns = kind == RequestKind::kGate0 && decision.terms.returns;
  }
  const bool back = ComesBack(requests[decision.request]);
  if (back) {
    change.terms = decision.terms;
    change.returns = job.away_from != Phase::kUnprofiled && decision.terms.returns;
  }
  if (decision.raises_claim) change.terms.claim = decision.terms.claim;
  change.terms.waived = decision.terms.waived;
  change.takes = job.spare == 0
                     ? decision.extents
                     : Subtract(decision.extents, ledger.map().Held(job.id, UnitState::kSpare));
  if (back) change.takes = Union(change.takes, job.away);
  const uint64_t held = uint64_t{job.held()} - TotalUnits(change.frees) + TotalUnits(change.takes);
  // Ledger::Grant has the same two conditions.
  if (!decision.extents.empty() && (held > change.terms.claim || held + job.outside > job.limit)) {
    return std::nullopt;
  }
  return change;
}

uint64_t HeldAfter(const Job& job, const Request& request) {
  return job.needs() - job.spare + request.units;
}

Units WaivedAfter(const Job& job, const Request& request) {
  // Its profile went while it stood at its gate: nothing is known of what it will need.
  if (job.phase != Phase::kRunning) return 0;
  const Units waived = std::max(job.terms.waived, std::min(request.waives, job.terms.claim));
  const uint64_t wanted = uint64_t{job.leased} + request.units;
  if (wanted >= job.terms.claim) return 0;
  return std::min(waived, job.terms.claim - static_cast<Units>(wanted));
}

Status Apply(const Decision& decision, const std::vector<Request>& requests, Ledger* ledger) {
  Ledger next = *ledger;
  Status status = MakeOperations(decision, requests, &next);
  if (status.ok()) *ledger = std::move(next);
  return status;
}

std::vector<Record> RecordsOf(const Decision& decision, const std::vector<Request>& requests,
                              const Ledger& ledger) {
  Record record;
  record.job = decision.job;
  if (decision.kind == Decision::Kind::kReclaim) {
    record.event = EventKind::kReclaim;
    record.extents = decision.reclaim;
    return {record};
  }
  // What is done is logged when it is done (EventKind::kEvict).
  if (decision.kind == Decision::Kind::kEvict) return {};
  const Request& request = requests[decision.request];
  record.gate = request.gate;
  record.units = request.units;
  record.contiguous = request.contiguous;
  if (decision.kind == Decision::Kind::kDeny) {
    record.event = EventKind::kDeny;
    // A gate opens all the same, and the job asks for what it needs piece by piece.
    const bool at_gate =
        request.kind == RequestKind::kGate && decision.code == DenyCode::kExhausted;
    record.reason = ReasonName(at_gate ? RefusalReason::kGate : ReasonFor(decision.code));
    record.text = decision.reason;
  } else {
    const bool opens = Begins(request);
    record.event = opens ? EventKind::kGate : EventKind::kGrant;
    record.claim = decision.terms.claim;
    record.waives = decision.terms.waived;
    record.extents = decision.extents;
    record.reclaim = decision.reclaim;
    if (opens) {
      record.gate = 0;
      record.piece = decision.terms.piece;
      record.returns = decision.terms.returns;
      record.profiled = request.kind == RequestKind::kGate0;
      record.collective = record.profiled && ledger.Find(decision.job)->collective;
      record.sums_only = decision.sums_only;
    } else if (const Job* job = ledger.Find(decision.job)) {
      record.profiled = job->phase == Phase::kRunning;
      if (request.kind == RequestKind::kSwapIn) {
        record.event = EventKind::kBringBack;
        record.claim = 0;
        record.extents = job->away;
      } else if (request.kind == RequestKind::kBringBack) {
        record.event = EventKind::kBringBack;
        record.piece = decision.terms.piece;
        record.returns = decision.terms.returns;
        record.profiled = job->away_from == Phase::kRunning;
        record.sums_only = decision.sums_only;
        record.extents = job->away;
      }
    }
  }
  return {record};
}

void CountOvertaken(const Decision& decision, std::vector<Request>* requests) {
  if (decision.kind != Decision::Kind::kGrant) return;
  const Request& granted = (*requests)[decision.request];
  if (!Begins(granted)) return;
  const uint64_t ticket = granted.ticket;
  for (Request& request : *requests) {
    if (request.ticket < ticket) ++request.overtaken;
  }
}

bool PressureOn(const Ledger& ledger, JobId job, bool eager) {
  const Job* known = ledger.Find(job);
  if (known == nullptr) return false;
  if (eager || known->last_trough.empty()) return true;
  // With a second job admitted, every iteration ends drained: a job that came to its trough with
  // all it had would hold what another one, already past its gate, was promised.
  return std::any_of(ledger.jobs().begin(), ledger.jobs().end(), [job](const Job& other) {
    // What is beyond a budget, and held, waits for nothing.
    if (other.id == kBeyondBudget && other.held() == other.limit) return false;
    return other.id != job && other.phase != Phase::kDying;
  });
}

WaitReason ReasonOf(const Ledger& ledger, const Request& request, const Config& config) {
  const Job* job = ledger.Find(request.job);
  if (job == nullptr) return WaitReason::kAdmission;
  if (ComesBack(request)) return WaitReason::kHostMemory;
  if (!Begins(request)) return Lacks(ledger, *job, request.units, request.contiguous);
  WaitReason reason = WaitReason::kTurn;
  if (HoldsUp(ledger, *job, &reason) != nullptr) return reason;
  const uint32_t lanes = config.policy == "temporal" ? 1 : config.lanes;
  if (Occupants(ledger, job->id) >= lanes) return WaitReason::kTurn;
  const Units claim = request.kind == RequestKind::kGate0 ? request.claim : job->limit;
  const Units held = job->held();
  const Units wants = claim - std::min(claim, held);
  const WaitReason lacks = Lacks(ledger, *job, wants, std::min(wants, request.piece));
  const bool enough = uint64_t{ledger.free()} + job->spare >= wants;
  return enough && lacks == WaitReason::kMemory ? WaitReason::kTurn : lacks;
}

std::string WhyWaiting(const Ledger& ledger, const Request& request, const Config& config) {
  const Job* job = ledger.Find(request.job);
  if (job == nullptr) return "the job is not registered";
  std::string text = job->Title() + " waits";
  switch (request.kind) {
    case RequestKind::kNewcomer:
      text += " to begin";
      break;
    case RequestKind::kGate0:
      text += " for its next iteration";
      break;
    case RequestKind::kBringBack:
    case RequestKind::kSwapIn:
      text += " in host memory for " +
              ledger.Bytes(static_cast<Units>(job->needs()) + request.units - job->held());
      break;
    case RequestKind::kGate:
    case RequestKind::kLease:
      text += " for " + ledger.Bytes(request.units);
      break;
  }
  WaitReason reason = WaitReason::kTurn;
  if (const Job* other = Begins(request) ? HoldsUp(ledger, *job, &reason) : nullptr) {
    return text + " while " + other->Title() +
           (reason == WaitReason::kMeasurement
                ? " is measured: "
                : " computes nothing in the middle of its iteration: ") +
           ledger.Holders(job->id);
  }
  const std::string soft =
      config.soft_budget == 0 ? "" : ", soft budget " + ledger.Bytes(config.soft_budget);
  return text + " (policy " + config.policy + soft + ", free " + ledger.Bytes(ledger.free()) +
         " of " + ledger.Bytes(ledger.pool_units()) + "): " + ledger.Holders(job->id);
}

}  // namespace sluice::scheduler
