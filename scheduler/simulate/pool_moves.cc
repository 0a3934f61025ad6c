// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A job that left its claim, to host memory and back: as noderuntime/flow does it (flow_evict.cc),
// with copies that take their time.
#include <algorithm>

#include "scheduler/simulate/pool.h"

namespace sluice::scheduler::simulate {

Insurance Pool::InsuranceOf(const Request& request) const {
  const bool past = request.kind == RequestKind::kGate || request.kind == RequestKind::kLease;
  if (!past || options_.host.units == 0) return Insurance::kNone;
  if (moves_[request.job - 1].stage != Move::kNone) return Insurance::kLeaving;
  uint64_t used = TotalUnits(ledger_.Find(request.job)->loose);
  for (const Move& move : moves_) used += move.units;
  return used <= options_.host.units ? Insurance::kEvictable : Insurance::kNone;
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
  moves_[job].units = TotalUnits(
      Intersect(ledger_.map().Held(Id(job), UnitState::kLeased), ledger_.Find(Id(job))->loose));
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
  const bool known = ledger_.Find(Id(job))->phase == Phase::kRunning;
  RequestOf(job)->kind = known ? RequestKind::kGate : RequestKind::kLease;
  BeginMove(job, Move::kReturning);
}

std::vector<Request>::iterator Pool::RequestOf(size_t job) {
  return std::find_if(requests_.begin(), requests_.end(),
                      [job](const Request& r) { return r.job == Id(job); });
}

double Pool::NextMoveNs() const {
  double next = std::numeric_limits<double>::infinity();
  if (options_.host.units == 0) return next;  // nobody is moved
  for (const Move& move : moves_) {
    const bool under_way = move.stage == Move::kLeaving || move.stage == Move::kReturning;
    if (under_way) next = std::min(next, move.until_ns);
  }
  return next;
}

void Pool::EndMoves() {
  if (options_.host.units == 0) return;
  for (size_t job = 0; job < moves_.size(); ++job) {
    Move& move = moves_[job];
    if (move.until_ns > now_ns_) continue;
    if (move.stage == Move::kLeaving) {
      Must(ledger_.Evict(Id(job)));
      if (options_.record) {
        Record record;
        record.event = EventKind::kEvict;
        record.job = Id(job);
        record.extents = ledger_.Find(Id(job))->away;
        Log(std::move(record));
      }
      move.stage = Move::kAway;
      RequestOf(job)->kind = RequestKind::kBringBack;
      RequestOf(job)->returns = true;
      RequestOf(job)->overtaken = 0;
    } else if (move.stage == Move::kReturning) {
      move = {Move::kNone, 0, 0, move.done + 1};
    }
  }
}

}  // namespace sluice::scheduler::simulate
