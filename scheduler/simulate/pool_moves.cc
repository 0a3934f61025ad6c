// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A job that left its claim, to host memory and back: as noderuntime/flow does it (flow_evict.cc),
// with copies that take their time.
#include <algorithm>

#include "scheduler/simulate/pool.h"

namespace sluice::scheduler::simulate {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Insurance Pool::InsuranceOf(const Request& request) const {
  if (options_.host.units == 0) return Insurance::kNone;
  if (request.kind == RequestKind::kNewcomer || ComesBack(request)) return Insurance::kNone;
  if (moves_[request.job - 1].stage != Move::kNone) return Insurance::kLeaving;
  const Job& job = *ledger_.Find(request.job);
  if (job.phase == Phase::kParked && job.leased == 0) return Insurance::kNone;
  uint64_t used = TotalUnits(WouldMove(job));
  for (const Move& move : moves_) used += move.units;
  return used <= options_.host.units ? Insurance::kEvictable : Insurance::kNone;
}

/// Past its gate all outside its base, at its trough all.
Extents Pool::WouldMove(const Job& job) const {
  Extents leased = ledger_.map().Held(job.id, UnitState::kLeased);
  return job.phase == Phase::kParked ? leased : Intersect(leased, job.loose);
}

void Pool::MoveAway(const Request& request) {
  moves_[request.job - 1].stage = Move::kAsked;
  if (!options_.record) return;
  Record record;
  record.event = EventKind::kWait;  // for what, so that it can be judged
  record.job = request.job;
  record.gate = request.gate;
  record.units = request.units;
  record.contiguous = request.contiguous;
  Log(std::move(record));
}

void Pool::Still(size_t job, double now_ns) {
  if (!MustBeStill(job)) return;
  now_ns_ = now_ns;
  moves_[job].units = TotalUnits(WouldMove(*ledger_.Find(Id(job))));
  BeginMove(job, Move::kLeaving);
}

void Pool::BeginMove(size_t job, Move::Stage stage) {
  Move& move = moves_[job];
  move.stage = stage;
  const double bytes = static_cast<double>(move.units) * static_cast<double>(options_.unit_bytes);
  move.until_ns = now_ns_ + bytes / options_.host.bytes_per_ns;
}

/// The ledger has given it back what it had. What it waited for it asks for anew.
void Pool::BringBack(size_t job) {
  const auto request = RequestOf(job);
  switch (ledger_.Find(Id(job))->phase) {
    case Phase::kParked:
      request->kind = RequestKind::kGate0;
      request->overtaken = 0;
      request->due = false;
      break;
    case Phase::kRunning:
      request->kind = RequestKind::kGate;
      break;
    default:
      request->kind = RequestKind::kLease;
      break;
  }
  BeginMove(job, Move::kReturning);
}

std::vector<Request>::iterator Pool::RequestOf(size_t job) {
  return std::find_if(requests_.begin(), requests_.end(),
                      [job](const Request& r) { return r.job == Id(job); });
}

double Pool::NextMoveNs() const {
  double next = kNever;
  if (options_.host.units == 0) return next;  // nobody is moved
  for (const Move& move : moves_) {
    if (move.stage > Move::kAsked) next = std::min(next, move.until_ns);
  }
  return next;
}

void Pool::EndMoves() {
  if (options_.host.units == 0) return;
  for (size_t job = 0; job < moves_.size(); ++job) {
    Move& move = moves_[job];
    if (move.stage <= Move::kAsked || move.until_ns > now_ns_) continue;
    changed_ = true;
    if (move.stage == Move::kLeaving) {
      Must(ledger_.Evict(Id(job)));
      if (options_.record) {
        Record record;
        record.event = EventKind::kEvict;
        record.job = Id(job);
        record.extents = ledger_.Find(Id(job))->away;
        Log(std::move(record));
      }
      const bool by_turns = ledger_.Find(Id(job))->away_from == Phase::kParked;
      move.stage = Move::kAway;
      move.until_ns =
          by_turns ? now_ns_ + static_cast<double>(options_.setting.policy.slice_ns) : kNever;
      RequestOf(job)->kind = by_turns ? RequestKind::kSwapIn : RequestKind::kBringBack;
      RequestOf(job)->returns = true;
      RequestOf(job)->overtaken = 0;
    } else if (move.stage == Move::kAway) {
      RequestOf(job)->due = true;
      move.until_ns = kNever;
    } else {
      move = {Move::kNone, 0, 0, move.done + 1};
    }
  }
}

}  // namespace sluice::scheduler::simulate
