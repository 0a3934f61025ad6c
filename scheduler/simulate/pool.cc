// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/policy/operations.h"

namespace sluice::scheduler::simulate {

namespace {

/// [gate]: most the job holds from that gate to its trough, as far as its claims tell.
std::vector<Units> AheadOf(const Workload& workload, const Setting& setting) {
  const std::vector<GatePlan>& gates = workload.plan.gates;
  const Units peak = workload.plan.peak_units;
  std::vector<Units> ahead(gates.size(), peak);
  if (setting.claims == Claims::kContract) return ahead;
  Units most = workload.base_units;
  const Units step = std::max<Units>(
      1, (peak - std::min(peak, workload.base_units)) / std::max(setting.steps, 1u));
  for (size_t k = gates.size(); k-- > 0;) {
    most = std::max(most, gates[k].need_units);
    ahead[k] = most;
    if (setting.claims == Claims::kSteps) {  // up to the next step below the peak
      ahead[k] = peak - (peak - most) / step * step;
    }
  }
  return ahead;
}

Units PoolUnits(const Options& options) {
  const Units budget = options.setting.budget;
  return budget == 0 ? options.pool_units : std::min(budget, options.pool_units);
}

}  // namespace

Pool::Pool(const Options& options, const std::vector<const Workload*>& jobs)
    : options_(options),
      jobs_(jobs),
      ledger_(PoolUnits(options), options.unit_bytes),
      asking_(jobs.size(), false),
      open_(jobs.size()),
      iterations_(jobs.size(), 0) {
  for (const Workload* job : jobs) ahead_.push_back(AheadOf(*job, options.setting));
}

Status Pool::Begin() {
  uint64_t bases = 0;
  for (const Workload* job : jobs_) bases += job->base_units;
  if (options_.record) {
    Record record;
    record.units = ledger_.pool_units();
    record.unit_bytes = options_.unit_bytes;
    record.policy = options_.setting.policy.policy;
    Log(std::move(record), 0);
  }
  Units at = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Workload& job = *jobs_[i];
    const uint64_t needed = bases - job.base_units + job.plan.peak_units;
    if (needed > ledger_.pool_units()) {
      return Status(StatusCode::kResourceExhausted,
                    "'" + job.name + "' needs " + ledger_.Bytes(job.plan.peak_units) +
                        " at its peak and the others keep " +
                        ledger_.Bytes(static_cast<Units>(bases - job.base_units)) +
                        " at their troughs: the pool has " + ledger_.Bytes(options_.pool_units) +
                        ", allowed: from " + ledger_.Bytes(static_cast<Units>(needed)));
    }
    const auto limit = static_cast<Units>(ledger_.pool_units() - (bases - job.base_units));
    Must(ledger_.Admit(Id(i), job.name, job.base_units, limit));
    Must(ledger_.StartUnprofiled(Id(i)));
    Extents base;
    if (job.base_units > 0) base.push_back({at, job.base_units});
    at += job.base_units;
    Must(ledger_.Grant(Id(i), base));
    Must(ledger_.ReachTrough(Id(i), true));
    if (!options_.record) continue;
    Record record;
    record.event = EventKind::kRestore;
    record.job = Id(i);
    record.name = job.name;
    record.request = job.base_units;
    record.limit = limit;
    record.text = PhaseName(Phase::kParked);
    record.drained = true;
    record.extents = record.base = record.last_trough = base;
    Log(std::move(record), 0);
  }
  return Status();
}

void Pool::Ask(size_t job, size_t gate, uint64_t launched) {
  const Workload& workload = *jobs_[job];
  const GatePlan& plan = workload.plan.gates[gate];
  const Job& known = *ledger_.Find(Id(job));
  if (known.leased > plan.need_units) Release(job, plan.need_units, launched);
  Request request;
  request.job = Id(job);
  request.kind = gate == 0 ? RequestKind::kGate0 : RequestKind::kGate;
  request.gate = static_cast<uint32_t>(gate);
  request.units = plan.need_units - std::min(plan.need_units, known.leased);
  request.contiguous = std::min<Units>(request.units, 1);  // where memory lies is not modelled
  request.piece = 1;
  request.claim = workload.plan.peak_units;
  request.waives = workload.plan.peak_units - ahead_[job][gate];
  request.ticket = next_ticket_++;
  fenced_out_.push_back(request);
  asking_[job] = changed_ = true;
  if (gate == 0) ++iterations_[job];
}

void Pool::Release(size_t job, Units keep, uint64_t launched) {
  const Job& known = *ledger_.Find(Id(job));
  Extents transient = Subtract(ledger_.map().Held(Id(job), UnitState::kLeased), known.base);
  Units surplus = known.leased - std::min(keep, known.leased);
  surplus = std::min(surplus, TotalUnits(transient));
  if (surplus == 0) return;
  // From the middle of the pool towards the job's own end, so that what it keeps stays compact.
  if (known.terms.end == End::kLow) std::reverse(transient.begin(), transient.end());
  Extents released;
  for (const Extent& extent : transient) {
    const Units length = std::min(surplus, extent.length);
    if (length == 0) break;
    surplus -= length;
    released.push_back(known.terms.end == End::kLow ? Extent{extent.end() - length, length}
                                                    : Extent{extent.offset, length});
  }
  released = Merge(std::move(released));
  Must(ledger_.Release(Id(job), released, next_release_));
  open_[job].push_back({next_release_, launched});
  if (options_.record) {
    Record record;
    record.event = EventKind::kRelease;
    record.job = Id(job);
    record.release = next_release_;
    record.extents = std::move(released);
    Log(std::move(record), now_ns_);
  }
  ++next_release_;
}

void Pool::Done(size_t job, uint64_t done) {
  while (!open_[job].empty() && open_[job].front().launches <= done) {
    const ReleaseId id = open_[job].front().id;
    open_[job].pop_front();
    Must(ledger_.Fenced(Id(job), id));
    changed_ = true;
    if (!options_.record) continue;
    Record record;
    record.event = EventKind::kFenced;
    record.job = Id(job);
    record.release = id;
    Log(std::move(record), now_ns_);
  }
}

void Pool::Trough(size_t job, uint64_t launched, bool drained) {
  Release(job, jobs_[job]->base_units, launched);
  if (drained) Done(job, launched);
  Must(ledger_.ReachTrough(Id(job), drained));
  changed_ = true;
  if (!options_.record) return;
  Record record;
  record.event = EventKind::kTrough;
  record.job = Id(job);
  record.drained = drained;
  record.iteration = iterations_[job];
  Log(std::move(record), now_ns_);
}

Result<std::vector<size_t>> Pool::Answer(double now_ns) {
  now_ns_ = now_ns;
  if (!broken_.ok()) return broken_;
  PromoteFencedOut();
  std::vector<size_t> answered;
  while (changed_) {
    const auto decision = Next(ledger_, requests_, options_.setting.policy);
    if (!decision) {
      changed_ = false;
      break;
    }
    ++decisions_;
    if (decision->kind == Decision::Kind::kDeny) {
      return Status(StatusCode::kResourceExhausted, decision->reason);
    }
    if (options_.record) {
      for (Record& record : RecordsOf(*decision, requests_, ledger_)) {
        record.iteration = iterations_[decision->job - 1];
        Log(std::move(record), now_ns);
      }
    }
    Must(MakeOperations(*decision, requests_, &ledger_));
    if (decision->kind == Decision::Kind::kReclaim) continue;
    CountOvertaken(*decision, &requests_);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(decision->request));
    asking_[decision->job - 1] = false;
    answered.push_back(decision->job - 1);
  }
  return answered;
}

void Pool::PromoteFencedOut() {
  for (size_t i = 0; i < fenced_out_.size();) {
    if (WaitsForOwnFences(ledger_, fenced_out_[i])) {
      ++i;
      continue;
    }
    requests_.push_back(fenced_out_[i]);
    fenced_out_.erase(fenced_out_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Pool::Must(const Status& status) {
  if (broken_.ok() && !status.ok()) broken_ = Status(StatusCode::kInternal, status.message());
}

bool Pool::SomebodyElseAsks(size_t job) const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [job](const Request& request) { return request.job != Id(job); });
}

void Pool::Log(Record record, double now_ns) {
  record.t_ns = static_cast<uint64_t>(now_ns);
  records_.push_back(std::move(record));
}

}  // namespace sluice::scheduler::simulate
